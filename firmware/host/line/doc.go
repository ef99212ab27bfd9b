// Package line is the computer's side of the serial protocol of firmware/PROTOCOL.md: requests to a board, and their
// answers, over any connection of bytes.
//
//	c := line.New(port, line.Options{})
//	defer c.Close()
//	if err := c.Hello(ctx); err != nil { ... }
//	done, err := c.Say(ctx, "Once upon a time", line.Sampling{Tokens: 100, Temperature: 0.7, TopK: 40, Seed: 1},
//		func(t line.Token) error { _, err := os.Stdout.Write(t.Text); return err })
//
// The port is shared with the boot loader and the log of the framework, and may be opened in the middle of a line. What
// is no answer is passed over; an answer of the wrong form is an error. After an error the client finds the start of a
// conversation again before its next request, so that one lost answer does not spoil the next.
//
// Cancelling the context of a request stops the board too, between two tokens.
//
// Caveats: a Client has one conversation, so its methods must not be called at the same time. Lines that a board dropped
// because nobody read them are counted, as [Done].Lost, not got back.
package line

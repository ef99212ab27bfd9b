// Package loopback serves people on this machine, and nobody else.
//
//	l, err := loopback.Listen(ctx, "127.0.0.1:0")
//	err = loopback.Serve(ctx, l, handler)
//
// A page of another site that is open in the same browser can reach loopback addresses too. So [Serve] answers only requests
// whose Host is a loopback address: a name of the other site's that was made to lead here (DNS rebinding) is none. What a
// browser does not keep from other sites by itself, such as a WebSocket, must ask [Ours].
package loopback

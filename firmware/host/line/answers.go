package line

import (
	"math"
	"strconv"
	"strings"
)

// Token is one token of an answer.
type Token struct {
	ID     int32
	Micros int64  // since the last one; for the first, since the prompt was read
	Text   []byte // its bytes, which may end inside a character; nil unless they were asked for
}

// Done is the end of an answer.
type Done struct {
	PromptMs   float64 // for reading the prompt
	Tokens     int     // that the board made
	MsPerToken float64 // on average, the first left out
	Why        string  // "end", "length", "context" or "stopped"
	Lost       int     // tokens whose lines did not arrive whole
}

// kind is the kind of a line: the letter of its answer, '!' or '{'; 0 for a remark.
func kind(line string) byte {
	if line == "" {
		return 0
	}
	c := line[0]
	switch {
	case c == '{':
		return c
	case !strings.ContainsRune("PTEDRVQ!", rune(c)):
		return 0
	case len(line) == 1:
		return c
	case line[1] != ' ':
		return 0 // such as "Rebooting..."
	case strings.HasPrefix(line[2:], "("):
		return 0 // a line of the framework's log, such as "E (123) psram: ..."
	}
	return c
}

// started says whether a remark is that of a board that has just started.
func started(line string) bool {
	return strings.HasPrefix(line, "# ready") || strings.HasPrefix(line, "# not ready")
}

// whole reads a number without sign of at most so much.
func whole(s string, most uint64) (uint64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false // ParseUint takes no sign, but an underscore
	}
	v, err := strconv.ParseUint(s, 10, 64)
	return v, err == nil && v <= most
}

// decimal reads a number without sign that may have a fraction.
func decimal(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.") != "" || len(s) > 32 {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

func parsePrompt(line string) (ms float64, err error) {
	f := strings.Split(line, " ")
	if len(f) == 2 {
		if ms, ok := decimal(f[1]); ok {
			return ms, nil
		}
	}
	return 0, answerError(line, "want P and milliseconds")
}

func parseToken(line string, text bool) (t Token, err error) {
	want := 3
	if text {
		want = 4
	}
	f := strings.SplitN(line, " ", want)
	if len(f) == want {
		id, okID := whole(f[1], math.MaxInt32)
		us, okUs := whole(f[2], math.MaxInt64)
		if okID && okUs {
			t = Token{ID: int32(id), Micros: int64(us)}
			if text {
				if t.Text, err = unescape(f[3]); err != nil {
					return Token{}, answerError(line, err.Error())
				}
			}
			return t, nil
		}
	}
	return Token{}, answerError(line, "want T, a token, microseconds, and the token's bytes where asked for")
}

func parseEnd(line string) (d Done, err error) {
	f := strings.Split(line, " ")
	if len(f) == 4 {
		n, okN := whole(f[1], math.MaxInt32)
		ms, okMs := decimal(f[2])
		known := f[3] == "end" || f[3] == "length" || f[3] == "context" || f[3] == "stopped"
		if okN && okMs && known {
			return Done{Tokens: int(n), MsPerToken: ms, Why: f[3]}, nil
		}
	}
	return Done{}, answerError(line, "want E, tokens, milliseconds, and end, length, context or stopped")
}

func parseDigest(line string, n, mode int) (uint64, error) {
	f := strings.Split(line, " ")
	if len(f) == 4 && f[1] == strconv.Itoa(n) && f[2] == strconv.Itoa(mode) && len(f[3]) == len("0x0123456789abcdef") && strings.HasPrefix(f[3], "0x") {
		if v, err := strconv.ParseUint(f[3][2:], 16, 64); err == nil {
			return v, nil
		}
	}
	return 0, answerError(line, "want D, the "+strconv.Itoa(n)+" tokens and mode "+strconv.Itoa(mode)+" that were asked for, and a digest of 16 digits")
}

// parseRefusal reads a line that starts with !.
func parseRefusal(line string) error {
	code, message, ok := strings.Cut(strings.TrimPrefix(line, "! "), " ")
	if !ok || code == "" || message == "" {
		return answerError(line, "want !, a code and a message")
	}
	return &BoardError{Code: code, Message: message}
}

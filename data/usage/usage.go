// Package usage marks errors of a command line that cannot be understood, for which a program ends with status 2.
package usage

import (
	"fmt"
	"math"

	"github.com/spf13/pflag"
)

// Coded is an error that says with which status the program ends. An error of another program that was run, an
// exec.ExitError, has such a status too, but is none: that is not the status of this program.
type Coded interface {
	error
	ExitCode() int
	EndsProgram() // does nothing
}

// Error is an error in what the user asked for. The program ends with [Error.ExitCode].
type Error struct{ Err error }

// Errorf makes an [Error] as fmt.Errorf makes its text.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the error that is marked.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the status of a command line that cannot be understood.
func (e *Error) ExitCode() int { return 2 }

// EndsProgram marks the status as that of the program.
func (e *Error) EndsProgram() {}

// Name is the argument that names something, or empty when there is none and the newest is meant. An argument that is
// empty itself, as an unset variable of a shell gives, is refused: it would choose in silence.
func Name(args []string, what string) (string, error) {
	if len(args) == 0 {
		return "", nil
	}
	if args[0] == "" {
		return "", Errorf("%s is empty: name it, or leave the argument out for the newest", what)
	}
	return args[0], nil
}

// modelFlag names a model as the argument of a command does.
const modelFlag = "model"

// AddModel adds the flag --model, which says what the argument of the command may say too: a MODEL, for [Model].
func AddModel(flags *pflag.FlagSet, argument string) {
	flags.String(modelFlag, "", "the model: the same as "+argument)
}

// Model is what the argument or the flag of [AddModel] names, or empty when the newest is meant; see [Name]. Two different
// names are refused.
func Model(flags *pflag.FlagSet, args []string, argument string) (string, error) {
	name, err := Name(args, argument)
	if err != nil || !flags.Changed(modelFlag) {
		return name, err
	}
	model, err := flags.GetString(modelFlag)
	switch {
	case err != nil:
		return "", err
	case model == "":
		return "", Errorf("--%s is empty: name the model, or leave the flag out for the newest", modelFlag)
	case name != "" && name != model:
		return "", Errorf("--%s %s and %s name two models; name one", modelFlag, model, name)
	}
	return model, nil
}

// topKFlag is how a flag is written that some programs call --topk.
const topKFlag = "top-k"

// AddTopK adds the flag --top-k, of how many of the likeliest tokens one is drawn; 0 is all. --topk is the same flag, and --help
// does not list it. [TopK] checks the value.
func AddTopK(flags *pflag.FlagSet, into *int, usual int) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "topk" {
			name = topKFlag
		}
		return pflag.NormalizedName(name)
	})
	flags.IntVar(into, topKFlag, usual, "choose among the `K` likeliest tokens; 0: among all")
}

// TopK refuses values of the flag of [AddTopK] that mean nothing.
func TopK(k int) error {
	if k < 0 || k > math.MaxInt32 {
		return Errorf("--%s %d is not between 0 (all tokens) and %d", topKFlag, k, math.MaxInt32)
	}
	return nil
}

// MostTemperature is the highest temperature that people may ask for.
const MostTemperature = 100

// Temperature is what a flag --temperature means: it goes in steps of a thousandth, as in requests to a board, so that all who
// write with it write the same.
func Temperature(t float64) (float64, error) {
	if !(t >= 0 && t <= MostTemperature) { // also refuses NaN
		return 0, Errorf("--temperature %g is not between 0 and %d", t, MostTemperature)
	}
	return math.Round(t*1000) / 1000, nil
}

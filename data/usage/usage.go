// Package usage marks errors of a command line that cannot be understood, for which a program ends with status 2.
package usage

import "fmt"

// Error is an error in what the user asked for. The program ends with [Error.ExitCode].
type Error struct{ Err error }

// Errorf makes an [Error] as fmt.Errorf makes its text.
func Errorf(format string, args ...any) error { return &Error{fmt.Errorf(format, args...)} }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the error that is marked.
func (e *Error) Unwrap() error { return e.Err }

// ExitCode is the status of a command line that cannot be understood.
func (e *Error) ExitCode() int { return 2 }

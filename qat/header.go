package qat

import _ "embed" // for Header

// Header is the text of rules.h. Packages that include rules.h from their C files import this one: since the header is
// embedded here, the go command sees its changes and rebuilds them, which it does not for a header outside a package.
//
//go:embed rules.h
var Header string

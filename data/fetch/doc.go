// Package fetch downloads large files: it goes on where an earlier attempt stopped, tries again when the connection
// fails, and puts a file under its final name only after its size and SHA-256 have been checked.
//
// The bytes so far lie in NAME.part, and what is known of them (the server's entity tag and size) in NAME.part.json.
// An attempt that goes on asks for the rest with Range and If-Range, so that a file that has changed on the server is
// fetched anew instead of being glued together from two versions. Servers that ignore Range work too, they only start
// over.
//
// The hash to check against is, in this order: the one the caller knows; the one the server announces for the file in
// X-Linked-Etag, as the Hugging Face hub does for large files; none, and then only the size is checked and the result
// says so.
package fetch

// Package data reads the text that models are trained and scored on.
//
// A [Corpus] is a source of stories. [Open] finds out what a file holds by looking at its content, not its name:
//
//   - delimited text, the form of the official TinyStories files: stories divided by <|endoftext|>, wherever it stands;
//   - JSON: one array of records, or records one after another (JSONL). A record is an object with a "story" or
//     "text" field ("story" wins when there are both), or a string;
//   - any other text: divided at blank lines, so that each paragraph is a story. A text without a blank line is one
//     story. To keep longer pieces together, put <|endoftext|> between them.
//
// Besides files there is a generator of simple stories, [Builtin], opened as "builtin:seed:stories".
//
// # What happens to the bytes
//
// A UTF-8 byte-order mark at the start of a file is dropped. In every story, line ends become LF (carriage returns just
// before a line feed are dropped; others stay), and spaces, tabs, carriage returns and line feeds are trimmed from both
// ends. A story that is empty then is skipped. All other bytes are kept as they are, also where they are not UTF-8.
// UTF-16 and UTF-32 are recognised and refused, so are directories, empty files, and the usual packed formats.
//
// # Caveats
//
// Opening a file reads it once to take its hash. Reading it to the end takes the hash again, and a file that changed in
// between is an error. Files of any size are read in a few hundred kilobytes of memory; only a single long story makes
// the buffer grow, up to [MaxStory], beyond which it is refused with its offset.
package data

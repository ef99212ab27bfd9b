// Package esp32ai reads the model files of the esp32-ai project and says what they are in chiplm's terms, weight for
// weight: the 4-bit codes and float16 scales stay what they are, nothing is quantised again.
//
// # Overview
//
// [Open] and [Parse] read a file, in the format with the magic PLE and a zero byte (version 1) and in the older one
// without a version; [File.Model] maps it to a configuration, quantised matrices and norms. What chiplm's image cannot
// hold exactly is refused, by the name of the tensor. docs/import.md lists what is kept, what is expressed otherwise
// (still exactly), and where the arithmetic differs.
//
// # Caveats
//
// The files hold no checksum and no tokenizer: a bit that flipped in a code goes unseen, and which text a token stands for
// is for the tokenizer.json of the same training to say.
package esp32ai

// Package bpe is chiplm's tokenizer: byte-level byte-pair encoding (Sennrich et al., "Neural Machine Translation of
// Rare Words with Subword Units", 2016) with GPT-2's way of splitting text into words (Radford et al., "Language
// Models are Unsupervised Multitask Learners", 2019).
//
// [Train] learns a vocabulary of any size from 257 entries up: the end-of-text token, the 256 bytes, and merges.
// It is deterministic, and equal to what Hugging Face's tokenizers trains from the same stories with a BpeTrainer whose
// special token is <|endoftext|> and whose initial alphabet is ByteLevel's. [Tokenizer.JSON] writes a Hugging Face
// tokenizer.json, [Parse] and [Load] read one, and [Tokenizer.AppendImage] and [FromImage] do the same for the
// tokenizer section of an image.
//
// Every byte string round-trips: Decode(Encode(b)) is b, whatever b holds, because all 256 bytes are entries.
// For splitting, a byte that is not part of valid UTF-8 counts as one character that is neither letter, number nor
// white space, which is also how U+FFFD is treated. The character classes are those of Unicode 16 and are part of
// this package, so a new Go release does not change how text is cut.
//
// Caveats: Encode never returns the end-of-text token; the characters <|endoftext|> in a text are plain text. (Hugging
// Face does the same when its encode_special_tokens is set.) A model's vocab_size must equal [Tokenizer.Size].
package bpe

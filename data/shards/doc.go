// Package shards keeps a tokenised corpus in one memory-mapped file and cuts it into training sequences.
//
// [Build] makes the shard of a corpus and a tokenizer in the cache folder, or opens the one that is there already;
// [Write] and [Open] do the same for any path. A shard carries the hashes of both, and [Shard.Check] refuses it for
// another corpus or tokenizer. [New] gives the training sequences of a shard.
//
// # The file
//
// Little endian. A header of 160 bytes:
//
//	offset  type    field
//	0       u8[8]   magic "CLMSHARD"
//	8       u32     version: 1
//	12      u32     header bytes: 160
//	16      u32     bytes per token: 2 when the vocabulary has at most 65,536 entries, else 4
//	20      u32     vocabulary size
//	24      u32     id of the end-of-text token
//	28      u32     flags: 0
//	32      u8[32]  SHA-256 of the corpus
//	64      u8[32]  SHA-256 of the tokenizer
//	96      u64     tokens, the end-of-text after each story included
//	104     u64     stories
//	112     u64     raw bytes: the sum of the stories' lengths before tokenising
//	120     u8[32]  reserved, zero
//	152     u32     CRC-32C of everything after the header
//	156     u32     CRC-32C of the header before this field
//
// then the tokens of all stories in the corpus's order, each story followed by end-of-text, zero bytes up to a multiple
// of 8, and for each story the index of the token after its end-of-text, u64.
//
// # Caveats
//
// Opening a shard reads it once, to check its CRC, its offsets and that every id is in the vocabulary: after that no
// content can make reading fail. A file that another program shortens while it is mapped ends the process with a bus
// error, as with every mapped file; nothing in chiplm writes to a finished shard. Shards in the cache are never deleted
// on their own.
package shards

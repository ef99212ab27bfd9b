// Package web holds the page of chiplm and serves it: [Command] is `chiplm page`.
//
// The page itself is in page/ and wasm/; build.mjs makes dist/ of them, which the program embeds. A program that was built
// without it is whole but for this command, which says so ([ErrNotBuilt]). So Go alone builds this package.
//
// # What the page is given
//
// [Command] serves these files, or writes them for any static host (--out). URLs in them are relative to the page.
//
//	/                             dist/
//	/page.json                    {kind, program: its version, virtual: the address of a virtual board, or null}; in a folder
//	                              that was written also files: size and SHA-256 of each
//	/models.json                  the models, the one to begin with first
//	/models/NAME/model.json       an entry of models.json that is complete
//	/models/NAME/model.clm        the image that the page runs
//	/models/NAME/esp32s3/...      for the chip: model.clm, and manifest.json and placement.json of its export
//	/firmware.json                the firmware for the chip, or null: {chip, version, files: [{name, offset, bytes, sha256, url}],
//	                              partitions: [{name, type, subtype, offset, bytes}]}
//	/firmware/...                 its files
//
// An entry of models.json is
//
//	{name, source,                  // in URLs and for people; what was named
//	 facts,                         // release.json; of a model that is none the same keys, as far as they are known
//	 image, sha256, bytes,
//	 digest: {n, value},            // what the request D n of firmware/PROTOCOL.md must give
//	 board: {esp32s3: {image, sha256, bytes, offset, manifest, placement}},
//	 cost,                          // what `chiplm cost NAME --json` prints
//	 refused}                       // a sentence: why there is nothing for the chip
//
// To make an image for the chip takes seconds, and a page must not wait for it: until it is made, board and cost are null in
// /models.json, while /models/NAME/model.json answers when it is. The first who asks for /models.json starts the work. Where
// the model cannot be put on the chip they stay null, and refused says why. In a folder that was written all is complete.
//
// # Who is served
//
// This machine alone: see package loopback. Files are a list made at the start, so no path leads out of it.
package web

// Package released holds the trained models that the program carries, and finds what a user names among them and the
// user's own runs.
//
// A released model is a folder:
//
//	model.clm        the image for a host: codes and scales as they were trained, tokenizer, golden; no clusters
//	config.yaml      the resolved model file
//	tokenizer.json   the tokenizer
//	README.md        the model card, which [Facts.Card] writes from the facts
//	release.json     the [Facts]: what it is, what it was trained on, what it scored, and the SHA-256 of each other file
//
// The folders under models/ are embedded in the program, so an installed binary has them wherever it runs. [Store.Open]
// compares every hash. Package export writes such folders and makes images for chips of them: codes and scales stay as
// they are, only their places change.
//
// # Caveats
//
// A released model has no weights as they were trained. It cannot be trained on, nor quantised otherwise.
package released

// Package sweep trains and scores many models that are to be compared: the arms of a study, each with several seeds, as one
// file says ([Load]). Every finished run is a line of a results file (package results), which `chiplm compare` renders.
//
// A sweep owns a folder: results.jsonl, tokenizers/ (one for each size of vocabulary), and runs/ with a folder for each run,
// as `chiplm train` makes them. All it knows is in there, so a sweep that was stopped, at whatever moment, goes on where it
// was: what has a line is done, what has a checkpoint is resumed, and what is trained is scored.
//
// Runs are independent, and one worker each is the cheapest way to train them, so as many run at a time as there are
// workers; when fewer are left, they share the workers. The weights do not depend on it.
//
// Caveats: arms are told apart by name and by the settings that decide their weights. A change of the program that changes
// what the same settings give is not noticed; each line says which program wrote it.
package sweep

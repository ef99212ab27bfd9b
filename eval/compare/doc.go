// Package compare answers, from the results of trained and scored runs, whether a variant is better than another, whether
// that is more than chance, and what it costs. `chiplm compare` is its command.
//
// Runs of one variant that differ in their seed are an arm. [Load] reads result files and sorts their runs into arms,
// [New] makes a [Report] of them, and a report is written as tables, as Markdown, as JSON, or as a page of HTML.
//
// # Statistics
//
// The spread of an arm is the range of two runs, and the standard deviation (with n - 1) of three or more. One run has
// no spread.
//
// A difference to the baseline is that of the means, with a 95 % confidence interval by Student's t distribution:
//
//   - Paired, where both arms have the same seeds and at least three of them: the differences d of equal seeds have the
//     mean's interval mean(d) +- t(n-1) sd(d) / sqrt(n). What a seed does to both arms alike cancels.
//   - Pooled, otherwise: two runs know almost nothing of their spread (t with one degree of freedom is 12.7), so all arms
//     of the table share one standard deviation s, the root of the sum of squares within the arms over its degrees of
//     freedom f, the sum of n - 1. The interval is the difference +- t(f) s sqrt(1/n + 1/m).
//   - None, where no arm has two runs: the difference is told without an interval, and the verdict says so.
//
// The rule looks at the seeds alone, never at the scores, so it cannot choose the narrower of two intervals. Both forms are
// textbook: the NIST/SEMATECH e-Handbook of Statistical Methods, sections 7.3.1.1 (paired observations), 1.3.5.3 (two samples
// of equal variance) and 7.4.3 (one variance for several groups).
//
// # Caveats
//
// Pooling takes the arms to be equally noisy. Where one is much noisier than the rest, it widens all intervals, and the
// report names it. Seeds shared by arms make pooled intervals too wide rather than too narrow. Each interval stands for
// itself: of twenty arms without any effect, about one will seem to have one. Costs and predicted speeds are taken as
// exact.
//
// Nats per token compare only between arms of one tokenizer; between others the report speaks of bits per byte, and of
// bytes of text per second instead of tokens per second.
package compare

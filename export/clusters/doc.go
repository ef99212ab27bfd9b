// Package clusters makes the two-stage output layer: it lets a token read a part of the head's rows and still prove that
// no row left unread has one of the k largest logits.
//
// # Method
//
// A hidden state x (int8 codes, in units of its scale) is turned by a fixed matrix, z = [Clusters.Rotation] x, and every
// row w of the head is written in the turned space: w x = u z. The rotation balances hidden states and rows, so that a
// few directions carry most of every logit (balanced truncation: the directions are those of E[x x'] and of the rows'
// second moment at once, the largest products first). Then three bounds of w x, each tighter and dearer than the last:
//
//	cluster   the rows of a cluster lie in a box of the first [BoxDims] directions; what remains of them has a largest norm
//	level 0   30 codes of 4 bits a row, and the norm of what they leave: 16 bytes
//	level 1   30 codes more, and the norm of what all 60 leave: 16 bytes
//
// Clusters are read in the order of their bounds. A row whose bounds all reach the k-th largest logit found so far is
// read in full, and its logit is the same float that the full head gives. The search ends at the first cluster whose
// bound does not reach it. [Clusters.Search] is that search, in the float32 arithmetic of docs/numerics.md.
//
// # Why a bound holds
//
// Let r be what the codes leave of u. For any positive weights v: |r z| = |sum (r_j/v_j) (z_j v_j)| <= n N, with
// n = |r/v| stored for the row, rounded up, and N = |z v| computed for the token. The weights make the two vectors alike
// on average, where the inequality loses least. Everything rounded in a bound, and in the logit it is held against, is
// covered by a slack that is the same for all rows; see [Query].
//
// # Margin
//
// A margin below 1 shrinks all norms: the search then reads less and no longer proves anything.
package clusters

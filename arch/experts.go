package arch

// experts is the mixture of experts of one layer.
type experts struct {
	aux float64 // load-balancing loss of the last run, not weighted
}

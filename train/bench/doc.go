// Package bench measures how fast training is and where its time goes: `chiplm bench train`.
//
// It runs optimiser steps of a [train.Trainer] as `chiplm train` does, on token ids drawn at random, with a profile for
// each worker (package profile), and holds the speed against the single-threaded matrix product of the BLAS library on
// all workers' cores at the same time.
package bench

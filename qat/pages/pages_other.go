//go:build !linux

package pages

func advise(address, bytes uintptr) {}

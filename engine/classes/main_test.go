package main

import (
	"os"
	"testing"

	"github.com/chiplm/chiplm/data/bpe"
)

func TestTheTableIsOfThisPackage(t *testing.T) {
	have, err := os.ReadFile("../encode_classes.h")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != header(bpe.ClassOf) {
		t.Error("encode_classes.h is not what the classes of package bpe give: go generate ./engine/classes")
	}
}

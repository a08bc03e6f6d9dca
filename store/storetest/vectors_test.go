package storetest

import (
	"bytes"
	"os"
	"testing"
)

// The vectors are in this package for those who test stores of their own. They are those of package algorithm.
func TestVectorsAreThoseOfTheAlgorithms(t *testing.T) {
	text, err := os.ReadFile("../../algorithm/testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, vectorText) {
		t.Error("testdata/vectors.json differs from algorithm/testdata/vectors.json: copy it")
	}
}

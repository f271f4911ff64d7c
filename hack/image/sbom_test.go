// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sum is the SHA-256 of empty input, in the form of go.sum, and sumInHex in hexadecimal.
const (
	sum      = "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	sumInHex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

func TestBillOfMaterials(t *testing.T) {
	bom := decode(t, newProgram(t,
		&debug.Module{Path: "example.org/one", Version: "v1.2.3", Sum: sum},
		&debug.Module{Path: "example.org/old", Version: "v2.0.0+incompatible", Sum: sum},
		&debug.Module{
			Path: "example.org/theirs", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/ours", Version: "v1.0.1", Sum: sum},
		},
	))
	if subject := bom.Metadata.Component; subject.Name != "example.org/server" || subject.Version != "v1.0.0" ||
		(*subject.Hashes)[0].Value != sumInHex {
		t.Errorf("got component %+v", subject)
	}
	if bom.SerialNumber == "" || bom.Metadata.Timestamp != "2020-02-03T04:05:06Z" {
		t.Errorf("got serial number %q, timestamp %s", bom.SerialNumber, bom.Metadata.Timestamp)
	}
	var got []string
	for _, component := range *bom.Components {
		got = append(got, component.PackageURL)
	}
	want := []string{
		"pkg:golang/std@1.26.8", "pkg:golang/example.org/one@v1.2.3", "pkg:golang/example.org/old@v2.0.0%2Bincompatible",
		"pkg:golang/example.org/ours@v1.0.1", "pkg:golang/golang.org/x/crypto/x509roots/fallback@",
	}
	for i := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("components:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if hashes := *(*bom.Components)[1].Hashes; hashes[0].Value != sumInHex || hashes[0].Algorithm != cdx.HashAlgoSHA256 {
		t.Errorf("example.org/one: got hashes %v", hashes)
	}
	if parts := *(*bom.Dependencies)[0].Dependencies; len(parts) != len(*bom.Components) {
		t.Errorf("got %d dependencies of the program, want %d", len(parts), len(*bom.Components))
	}
}

func TestModuleWithoutSum(t *testing.T) {
	program := newProgram(t, &debug.Module{Path: "example.org/local", Version: "v1.0.0"})
	if _, err := newBOM(program); err == nil || !strings.Contains(err.Error(), "example.org/local") {
		t.Errorf("got error %v, want the name of the module", err)
	}
}

func newProgram(t *testing.T, modules ...*debug.Module) program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return program{
		arch: "amd64", path: path, revision: "abc", time: time.Date(2020, 2, 3, 4, 5, 6, 0, time.UTC),
		info: &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "example.org/server", Version: "v1.0.0"}, Deps: modules},
	}
}

func decode(t *testing.T, p program) *cdx.BOM {
	t.Helper()
	content, err := newBOM(p)
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(content), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	return &bom
}

// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/configbutler/slipstream/pkg/access/egress"
)

var update = flag.Bool("update", false, "write the tables that come from code into the pages instead of comparing with them")

// TestDestinations compares the tables in the page on security with the addresses that pkg/access/egress refuses.
func TestDestinations(t *testing.T) {
	wantTable(t, "docs/security.md", "refused addresses", refusedAddresses())
	wantTable(t, "docs/security.md", "addresses that hold others", embeddingAddresses())
}

// wantTable compares the table in a page with the rows, or writes it with -update.
func wantTable(t *testing.T, page, name string, rows []string) {
	t.Helper()
	file := filepath.Join(moduleRoot(t), page)
	begin, end := fmt.Sprintf("<!-- %s: written by go test ./test/docs -run TestDestinations -update -->\n", name), "\n<!-- end -->"
	text := readFile(t, file)
	before, rest, found := strings.Cut(text, begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no marks of the table %s, %q and %q", page, name, begin, end)
	}
	want := strings.Join(rows, "\n")
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("table of %s in %s is outdated; run this test with -update. Want:\n%s", name, page, want)
	}
	if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// refusedAddresses returns a row for each range of a class, and one for a class without ranges.
func refusedAddresses() []string {
	rows := []string{"| class | addresses | what is there | allowed by |", "|---|---|---|---|"}
	for _, class := range egress.Classes() {
		allowed := "addresses and CIDRs only"
		if class.Word != "" {
			allowed = "`" + class.Word + "`"
		}
		row := func(addresses, reason string) {
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |", class.Name, addresses, reason, allowed))
		}
		for _, each := range class.Ranges {
			row("`"+each.Prefix.String()+"`", each.Reason)
		}
		if len(class.Ranges) == 0 {
			row("depends on where the server runs", class.Reason)
		}
	}
	return rows
}

func embeddingAddresses() []string {
	rows := []string{"| form | addresses | where the IPv4 address is |", "|---|---|---|"}
	for _, form := range egress.Forms() {
		addresses := "`" + form.Prefix.String() + "`"
		if form.Prefix.Bits() == 0 {
			addresses = "all"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", form.Name, addresses, form.Where))
	}
	return rows
}

// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const (
	// columnGap is the space between columns.
	columnGap = "  "
	// minState is the least width of the column STATE, so that a long name does not hide the state.
	minState = 12
	// stateName is the header of the column that is cut.
	stateName = "STATE"
)

// statusPrinter prints trees as tables.
type statusPrinter struct {
	out io.Writer
	// width is that of a line in characters. A longer line loses the end of its state; 0 means no limit.
	width int
	// height is the maximum number of lines, 0 means no limit.
	height int
	// fill makes STATE as wide as possible, so that later lines are aligned.
	fill bool
	// boxes draws the tree with box characters.
	boxes   bool
	colours bool
	// namespaces adds the namespace of each object. wide adds more columns.
	namespaces, wide bool
	// namespace is that of all objects unless namespaces is set.
	namespace string

	// widths are those of the columns that were printed last.
	widths []int
}

// cells are a line of the table. failed is whether its state is painted.
type cells struct {
	texts  []string
	failed bool
}

// print prints a tree with a header.
func (p *statusPrinter) print(roots []*line) error {
	lines := []cells{{texts: p.header()}}
	for _, root := range roots {
		lines = append(lines, p.cells(root, p.name(root)))
		for i, child := range root.children {
			lines = append(lines, p.cells(child, p.branch(i == len(root.children)-1)+p.name(child)))
		}
	}
	p.measure(lines)
	hidden := 0
	if p.height > 0 && len(lines) >= p.height {
		shown := max(0, p.height-2) // The cursor is on the last line.
		hidden, lines = len(lines)-shown, lines[:shown]
	}
	var text strings.Builder
	for _, l := range lines {
		p.write(&text, l)
	}
	if hidden > 0 {
		_, _ = fmt.Fprintf(&text, "... and %d more lines\n", hidden) // A Builder has no errors.
	}
	_, err := io.WriteString(p.out, text.String())
	return err
}

// printLine prints a line below a printed table, without a tree.
func (p *statusPrinter) printLine(l *line) error {
	var text strings.Builder
	p.write(&text, p.cells(l, p.name(l)))
	_, err := io.WriteString(p.out, text.String())
	return err
}

func (p *statusPrinter) header() []string {
	header := []string{"NAME", stateName, "REV", "AUTO", "WAITS FOR"}
	if p.namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	if p.wide {
		header = append(header, "READY", "REASON", "TARGET")
	}
	return header
}

// state returns the position of the column STATE.
func (p *statusPrinter) state() int {
	if p.namespaces {
		return 2
	}
	return 1
}

// branch returns what is before the name of an environment.
func (p *statusPrinter) branch(last bool) string {
	switch {
	case p.boxes && last:
		return "└─ "
	case p.boxes:
		return "├─ "
	case last:
		return "`- "
	}
	return "|- "
}

// name returns the name of an object, with its namespace if that is another one and has no column.
func (p *statusPrinter) name(l *line) string {
	name := shownAs[l.resource] + "/"
	if !p.namespaces && l.namespace != "" && l.namespace != p.namespace {
		name += l.namespace + "/"
	}
	return name + l.name
}

func (p *statusPrinter) cells(l *line, name string) cells {
	texts := []string{name, l.state, p.revision(l), l.auto, l.waitsFor}
	if p.namespaces {
		texts = append([]string{l.namespace}, texts...)
	}
	if p.wide {
		texts = append(texts, l.ready, l.reason, l.target)
	}
	for i := range texts {
		texts[i] = printable.Line(texts[i])
	}
	return cells{texts: texts, failed: l.failed}
}

// revision returns the revision of a catalog or an environment, with the one that is on offer if it is another one, or the commit of a
// destination.
func (p *statusPrinter) revision(l *line) string {
	arrow := "->"
	if p.boxes {
		arrow = "→"
	}
	applied := ""
	if l.revision > 0 {
		applied = fmt.Sprintf("r%d", l.revision)
	}
	switch {
	case l.commit != "":
		return l.commit
	case l.offered > 0 && l.offered != l.revision:
		return fmt.Sprintf("%s%sr%d", applied, arrow, l.offered)
	}
	return applied
}

// measure computes the widths of the columns. STATE gets what the others leave.
func (p *statusPrinter) measure(lines []cells) {
	p.widths = make([]int, len(lines[0].texts))
	for _, l := range lines {
		for i, text := range l.texts {
			p.widths[i] = max(p.widths[i], utf8.RuneCountInString(text))
		}
	}
	if p.width == 0 || p.wide {
		return
	}
	others := len(columnGap) * (len(p.widths) - 1)
	for i, width := range p.widths {
		if i != p.state() {
			others += width
		}
	}
	most := max(minState, p.width-others)
	if p.widths[p.state()] = min(p.widths[p.state()], most); p.fill {
		p.widths[p.state()] = most
	}
}

// write writes a line. The last text that is not empty has no spaces after it.
func (p *statusPrinter) write(out *strings.Builder, l cells) {
	var plain strings.Builder
	spaces := 0
	for i, text := range l.texts {
		if i == p.state() && !p.wide && p.width > 0 {
			text = cli.Shorten(text, p.widths[i])
		}
		width := utf8.RuneCountInString(text)
		if width > 0 {
			plain.WriteString(strings.Repeat(" ", spaces))
			spaces = 0
		}
		if i == p.state() && l.failed {
			text = cli.Red.Paint(text, p.colours)
		}
		plain.WriteString(text)
		spaces += max(0, p.widths[i]-width) + len(columnGap)
	}
	out.WriteString(plain.String() + "\n")
}

// statusItem is an object in JSON and YAML.
type statusItem struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// State is the sentence of the column STATE.
	State string `json:"state"`
	// InSync is whether an environment equals its catalog and is ready, or another object is ready.
	InSync bool `json:"inSync"`
	// Reason is that of the condition Ready.
	Reason string `json:"reason,omitempty"`
	// Revision is the catalog's, or the one that an environment holds. Offered is the one that its catalog offers.
	Revision int64  `json:"revision,omitempty"`
	Offered  int64  `json:"offered,omitempty"`
	Commit   string `json:"commit,omitempty"`
	Auto     string `json:"auto,omitempty"`
	WaitsFor string `json:"waitsFor,omitempty"`
	// Catalog is that of an environment, as NAMESPACE/NAME.
	Catalog string `json:"catalog,omitempty"`
	Target  string `json:"targetNamespace,omitempty"`
}

// kindOf are the kinds of resources.
var kindOf = map[string]string{
	catalogs: "AppCatalog", environments: "Environment", destinations: "GitDestination", pipelines: "SyncPipeline",
}

// statusNames are the singular names of resources, as kubectl prints them.
var statusNames = map[string]string{
	catalogs: "appcatalog", environments: "environment", destinations: "gitdestination", pipelines: "syncpipeline",
}

// writeItems prints lines as JSON, YAML or names.
func writeItems(out io.Writer, lines []*line, format string) error {
	items := make([]statusItem, 0, len(lines))
	for _, l := range lines {
		if format == "name" {
			if _, err := fmt.Fprintf(out, "%s.%s/%s\n", statusNames[l.resource], v1alpha1.SchemeGroupVersion.Group, l.name); err != nil {
				return err
			}
			continue
		}
		item := statusItem{
			Kind: kindOf[l.resource], Namespace: l.namespace, Name: l.name, State: l.state, InSync: l.inSync, Reason: l.reason,
			Revision: l.revision, Offered: l.offered, Commit: l.commit, Auto: l.auto, WaitsFor: l.waitsFor, Target: l.target,
		}
		if l.resource == environments {
			item.Catalog = l.catalog.namespace + "/" + l.catalog.name
		}
		items = append(items, item)
	}
	if format == "name" {
		return nil
	}
	text, err := json.MarshalIndent(map[string]any{"items": items}, "", "    ")
	if err == nil && format == "yaml" {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.TrimSuffix(string(text), "\n"))
	return err
}

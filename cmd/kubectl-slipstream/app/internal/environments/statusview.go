// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Resources that status shows. Records are the states of destinations.
const (
	catalogs     = "appcatalogs"
	environments = "environments"
	destinations = "gitdestinations"
	records      = "gitdestinationstatuses"
	pipelines    = "syncpipelines"
)

// shownAs are the names before those of objects.
var shownAs = map[string]string{
	catalogs: "catalog", environments: "environment", destinations: "gitdestination", pipelines: "syncpipeline",
}

// needed are the columns without which status would be wrong.
var needed = map[string][]string{
	catalogs: {"State", "Revision", "Ready", "Reason"}, environments: {"State", "Revision", "Offered", "Auto", "Waits-For", "Reason", "Catalog"},
	destinations: {"Ready", "Reason", "Message"}, records: {"State", "Commit"}, pipelines: {"State", "Ready", "Reason"},
}

// object identifies an object of a resource.
type object struct{ resource, namespace, name string }

// kindTable are the objects of a resource that the server has listed.
type kindTable struct {
	columns cli.Columns
	rows    map[object]*cli.Row
}

// view is what the server has listed, by resource. Resources that the user may not list are absent.
type view map[string]*kindTable

// set replaces all objects of a resource. It returns an error if the server does not have the columns that are needed.
func (v view) set(resource string, of cli.Columns, rows []*cli.Row) error {
	for _, column := range needed[resource] {
		if !slices.Contains(of, column) {
			return fmt.Errorf("the server is older than the plugin: its tables of %s have no column %s", resource, column)
		}
	}
	v[resource] = &kindTable{columns: of, rows: map[object]*cli.Row{}}
	for _, r := range rows {
		v[resource].rows[object{resource, r.Namespace, r.Name}] = r
	}
	return nil
}

// line is an object as it is printed.
type line struct {
	object

	state    string
	revision int64
	offered  int64
	commit   string
	auto     string
	waitsFor string
	reason   string
	target   string
	ready    string
	// catalog is that of an environment.
	catalog object
	// inSync is set if an environment equals its catalog and is ready, or another object is ready.
	inSync bool
	// failed is set if something has to be repaired.
	failed bool
	// absent is set for a catalog that is not listed, and is shown only as parent of its environments.
	absent bool
	// children are the environments of a catalog.
	children []*line
}

// normal are the reasons of an object that is not ready and has not failed.
var normal = []string{
	"", v1alpha1.ReasonSucceeded, v1alpha1.ReasonProgressing, v1alpha1.ReasonNeverSynced, v1alpha1.ReasonCatalogNotReady,
	v1alpha1.ReasonSuspended, v1alpha1.ReasonPipelinesSuspended, v1alpha1.ReasonExpired,
}

// line returns an object as it is printed, nil if it is not listed. A record belongs to the line of its destination.
func (v view) line(of object) *line {
	if of.resource == records {
		of.resource = destinations
	}
	kind := v[of.resource]
	if kind == nil || kind.rows[of] == nil {
		return nil
	}
	r := kind.rows[of]
	cell := func(name string) string { return kind.columns.Of(r, name) }
	l := &line{object: of, state: cell("State"), reason: cell("Reason"), ready: cell("Ready")}
	l.inSync, l.failed = l.ready == string(metav1.ConditionTrue), !slices.Contains(normal, l.reason)
	switch of.resource {
	case catalogs:
		l.revision = number(cell("Revision"))
	case environments:
		l.revision, l.offered = number(cell("Revision")), number(cell("Offered"))
		l.auto, l.waitsFor, l.target = cell("Auto"), cell("Waits-For"), cell("Namespace")
		l.catalog = catalogOf(of.namespace, cell("Catalog"))
		l.inSync = l.waitsFor == ""
	case destinations:
		v.addRecord(l, cell("Message"))
	}
	return l
}

// addRecord adds the state and commit of a destination. Without a record, its state is the message of its condition Ready.
func (v view) addRecord(l *line, message string) {
	l.state = message
	kind := v[records]
	if kind == nil {
		return
	}
	if r := kind.rows[object{records, l.namespace, l.name}]; r != nil {
		l.state, l.commit = kind.columns.Of(r, "State"), kind.columns.Of(r, "Commit")
	}
}

func number(cell string) int64 {
	var n int64
	_, _ = fmt.Sscan(cell, &n) // A cell that is no number is shown as none.
	return n
}

// catalogOf returns the catalog that an environment names, as NAMESPACE/NAME or, in its own namespace, as NAME.
func catalogOf(namespace, reference string) object {
	if other, name, qualified := strings.Cut(reference, "/"); qualified {
		return object{catalogs, other, name}
	}
	return object{catalogs, namespace, reference}
}

// tree returns all lines: catalogs with their environments, then destinations, then pipelines. Only catalogs with matching labels, or with
// environments, are in it.
func (v view) tree(selector labels.Selector) []*line {
	found := map[object]*line{}
	var roots []*line
	add := func(l *line) {
		found[l.object] = l
		roots = append(roots, l)
	}
	for _, of := range v.objects(environments) {
		l := v.line(of)
		if found[l.catalog] == nil {
			catalog := v.line(l.catalog)
			if catalog == nil {
				catalog = &line{object: l.catalog, inSync: true, absent: true}
			}
			add(catalog)
		}
		found[l.catalog].children = append(found[l.catalog].children, l)
	}
	for _, of := range v.objects(catalogs) {
		if found[of] == nil && selector.Matches(labels.Set(v[catalogs].rows[of].Labels)) {
			add(v.line(of))
		}
	}
	slices.SortFunc(roots, func(a, b *line) int { return compareObjects(a.object, b.object) })
	for _, resource := range []string{destinations, pipelines} {
		for _, of := range v.objects(resource) {
			roots = append(roots, v.line(of))
		}
	}
	return roots
}

// objects returns the objects of a resource, sorted.
func (v view) objects(resource string) []object {
	if v[resource] == nil {
		return nil
	}
	var found []object
	for of := range v[resource].rows {
		found = append(found, of)
	}
	slices.SortFunc(found, compareObjects)
	return found
}

func compareObjects(a, b object) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// flat returns the lines of a tree in the order in which they are printed, without catalogs that are not listed.
func flat(roots []*line) []*line {
	var lines []*line
	for _, root := range roots {
		if !root.absent {
			lines = append(lines, root)
		}
		lines = append(lines, root.children...)
	}
	return lines
}

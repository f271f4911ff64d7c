// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

const (
	// asTable requests that the server makes a table, so that no whole objects are downloaded.
	asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
	// tablePage is the number of rows that are read at once.
	tablePage = 250
	// minWatch is half of the longest time of a watch, as in client-go. The API server checks permissions only at the beginning of one, and
	// lets it last for half an hour and longer by itself.
	minWatch = 5 * time.Minute
	// noCell is what a table has for an empty cell.
	noCell = "<none>"
	// manyRetries is the default of client-go. What is repeated anyway has fewRetries, so that a failure is noticed soon.
	manyRetries, fewRetries = 10, 1
)

// Tables lists and watches objects of configbutler.ai as the tables that the server makes of them.
type Tables struct {
	client     rest.Interface
	parameters runtime.ParameterCodec
	// retries is how often a request is repeated if its connection breaks, with a pause of a second.
	retries int
}

// NewTables returns a client for the API server of flags and kubeconfigs.
func NewTables(config genericclioptions.RESTClientGetter) (*Tables, error) {
	found, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	found = rest.CopyConfig(found)
	found.GroupVersion, found.APIPath = &v1alpha1.SchemeGroupVersion, "/apis"
	found.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(found)
	if err != nil {
		return nil, err
	}
	return &Tables{client: client, parameters: runtime.NewParameterCodec(scheme), retries: manyRetries}, nil
}

// Selection selects objects of a resource.
type Selection struct {
	// Resource is the plural. An empty Namespace selects all namespaces.
	Resource, Namespace string
	// Labels and Fields are selectors. They may be empty.
	Labels, Fields string
	// Newest limits List to so many objects, the newest of a resource of which the server lists the newest first. 0 is no limit.
	Newest int
}

// Row is an object in a table.
type Row struct {
	Namespace, Name string
	// Version is the resourceVersion.
	Version string
	Created time.Time
	Labels  map[string]string
	// Cells are texts, empty where the server has no value.
	Cells []string
}

// rowObject is what is read of the metadata of an object in a table. The rest, such as managedFields, is skipped.
type rowObject struct {
	Metadata struct {
		Namespace         string            `json:"namespace"`
		Name              string            `json:"name"`
		ResourceVersion   string            `json:"resourceVersion"`
		CreationTimestamp metav1.Time       `json:"creationTimestamp"`
		Labels            map[string]string `json:"labels"`
	} `json:"metadata"`
}

// Columns are the names of a table's columns, in the order of the cells.
type Columns []string

// Of returns a cell of a row, empty if it has none.
func (c Columns) Of(r *Row, name string) string {
	if at := slices.Index(c, name); at >= 0 && at < len(r.Cells) {
		return r.Cells[at]
	}
	return ""
}

// TablePage is a part of a list.
type TablePage struct {
	Columns Columns
	Rows    []*Row
	// Version is the resourceVersion of the list, from which a watch continues.
	Version string
	// Continue reads the next page. It is empty after the last one.
	Continue string
}

// Page returns at most limit objects, from a continue token if it is not empty.
func (t *Tables) Page(ctx context.Context, of Selection, limit int64, from string) (*TablePage, error) {
	var table metav1.Table
	options := metav1.ListOptions{LabelSelector: of.Labels, FieldSelector: of.Fields, Limit: limit, Continue: from}
	if err := t.request(of.Resource, of.Namespace, &options).Do(ctx).Into(&table); err != nil {
		return nil, err
	}
	rows, err := rowsOf(&table)
	if err != nil {
		return nil, err
	}
	return &TablePage{Columns: columnsOf(&table), Rows: rows, Version: table.ResourceVersion, Continue: table.Continue}, nil
}

// List returns all objects in one page, or the newest ones. What changes while they are read is watched from its Version.
func (t *Tables) List(ctx context.Context, of Selection) (*TablePage, error) {
	all := &TablePage{}
	for {
		limit := tablePage
		if of.Newest > 0 {
			limit = min(limit, of.Newest-len(all.Rows))
		}
		page, err := t.Page(ctx, of, int64(limit), all.Continue)
		if err != nil {
			return nil, err
		}
		if all.Version == "" {
			all.Columns, all.Version = page.Columns, page.Version
		}
		all.Rows, all.Continue = append(all.Rows, page.Rows...), page.Continue
		if all.Continue == "" || of.Newest > 0 && len(all.Rows) >= of.Newest {
			return all, nil
		}
	}
}

// Get returns one object.
func (t *Tables) Get(ctx context.Context, resource, namespace, name string) (*Row, Columns, error) {
	var table metav1.Table
	if err := t.request(resource, namespace, &metav1.ListOptions{}).Name(name).Do(ctx).Into(&table); err != nil {
		return nil, nil, err
	}
	rows, err := rowsOf(&table)
	if err != nil {
		return nil, nil, err
	}
	if len(rows) != 1 {
		return nil, nil, fmt.Errorf("the server returned %d rows for %s %s", len(rows), resource, name)
	}
	return rows[0], columnsOf(&table), nil
}

// watch watches objects from a resourceVersion. The objects of events are tables.
func (t *Tables) watch(ctx context.Context, of Selection, version string) (watch.Interface, error) {
	seconds := int64((minWatch + rand.N(minWatch)).Seconds()) //nolint:gosec // It spreads the load, and is not secret.
	return t.request(of.Resource, of.Namespace, &metav1.ListOptions{
		LabelSelector: of.Labels, FieldSelector: of.Fields, ResourceVersion: version, Watch: true, AllowWatchBookmarks: true,
		TimeoutSeconds: &seconds,
	}).Watch(ctx)
}

func (t *Tables) request(resource, namespace string, options *metav1.ListOptions) *rest.Request {
	return t.client.Get().MaxRetries(t.retries).Resource(resource).NamespaceIfScoped(namespace, namespace != "").
		SetHeader("Accept", asTable).SpecificallyVersionedParams(options, t.parameters, schema.GroupVersion{Version: "v1"})
}

// columnsOf returns the columns of a table, nil if it does not name them, as later tables of a watch.
func columnsOf(table *metav1.Table) Columns {
	var found Columns
	for _, definition := range table.ColumnDefinitions {
		found = append(found, definition.Name)
	}
	return found
}

// rowsOf returns the rows of a table.
func rowsOf(table *metav1.Table) ([]*Row, error) {
	rows := make([]*Row, 0, len(table.Rows))
	for _, from := range table.Rows {
		var object rowObject
		if err := json.Unmarshal(from.Object.Raw, &object); err != nil {
			return nil, fmt.Errorf("reading a row of a table: %w", err)
		}
		of := &object.Metadata
		r := &Row{
			Namespace: of.Namespace, Name: of.Name, Version: of.ResourceVersion, Created: of.CreationTimestamp.Time,
			Labels: of.Labels, Cells: make([]string, len(from.Cells)),
		}
		for i, cell := range from.Cells {
			if text := fmt.Sprint(cell); cell != nil && text != noCell {
				r.Cells[i] = text
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

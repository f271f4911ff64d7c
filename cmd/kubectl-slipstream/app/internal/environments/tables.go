// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package environments

import (
	"context"
	"encoding/json"
	"fmt"

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
	// noCell is what a table has for an empty cell.
	noCell = "<none>"
)

// tables lists and watches objects as the tables that the server makes of them.
type tables struct {
	client     rest.Interface
	parameters runtime.ParameterCodec
}

// newTables returns a client for the API server of flags and kubeconfigs.
func newTables(config genericclioptions.RESTClientGetter) (*tables, error) {
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
	return &tables{client: client, parameters: runtime.NewParameterCodec(scheme)}, nil
}

// row is an object in a table.
type row struct {
	namespace, name, version string
	labels                   map[string]string
	cells                    []string
}

// rowObject is what is read of the metadata of an object in a table. The rest, such as managedFields, is skipped.
type rowObject struct {
	Metadata struct {
		Namespace       string            `json:"namespace"`
		Name            string            `json:"name"`
		ResourceVersion string            `json:"resourceVersion"`
		Labels          map[string]string `json:"labels"`
	} `json:"metadata"`
}

// columns are the positions of a table's cells by the names of their columns.
type columns map[string]int

// of returns a cell of a row, empty if it has none.
func (c columns) of(r *row, name string) string {
	if at, found := c[name]; found && at < len(r.cells) {
		return r.cells[at]
	}
	return ""
}

// list returns all objects of a resource, and the resourceVersion from which a watch continues.
func (t *tables) list(ctx context.Context, resource, namespace, selector string) (found []*row, of columns, version string, err error) {
	options := metav1.ListOptions{LabelSelector: selector, Limit: tablePage}
	for {
		var page metav1.Table
		if err := t.request(resource, namespace, &options).Do(ctx).Into(&page); err != nil {
			return nil, nil, "", err
		}
		if version == "" {
			version = page.ResourceVersion // What comes while later pages are read is watched.
		}
		if of == nil {
			of = columnsOf(&page)
		}
		rows, err := rowsOf(&page)
		if err != nil {
			return nil, nil, "", err
		}
		found = append(found, rows...)
		if options.Continue = page.Continue; options.Continue == "" {
			return found, of, version, nil
		}
	}
}

// get returns one object.
func (t *tables) get(ctx context.Context, resource, namespace, name string) (*row, columns, error) {
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

// watch watches a resource from a resourceVersion. The objects of events are tables.
func (t *tables) watch(ctx context.Context, resource, namespace, selector, version string) (watch.Interface, error) {
	return t.request(resource, namespace, &metav1.ListOptions{
		LabelSelector: selector, ResourceVersion: version, Watch: true, AllowWatchBookmarks: true,
	}).Watch(ctx)
}

func (t *tables) request(resource, namespace string, options *metav1.ListOptions) *rest.Request {
	return t.client.Get().Resource(resource).NamespaceIfScoped(namespace, namespace != "").
		SetHeader("Accept", asTable).SpecificallyVersionedParams(options, t.parameters, schema.GroupVersion{Version: "v1"})
}

// columnsOf returns the columns of a table, nil if it does not name them, as later tables of a watch.
func columnsOf(table *metav1.Table) columns {
	if len(table.ColumnDefinitions) == 0 {
		return nil
	}
	found := columns{}
	for i, definition := range table.ColumnDefinitions {
		found[definition.Name] = i
	}
	return found
}

// rowsOf returns the rows of a table.
func rowsOf(table *metav1.Table) ([]*row, error) {
	rows := make([]*row, 0, len(table.Rows))
	for _, from := range table.Rows {
		var object rowObject
		if err := json.Unmarshal(from.Object.Raw, &object); err != nil {
			return nil, fmt.Errorf("reading a row of a table: %w", err)
		}
		r := &row{
			namespace: object.Metadata.Namespace, name: object.Metadata.Name, version: object.Metadata.ResourceVersion,
			labels: object.Metadata.Labels, cells: make([]string, len(from.Cells)),
		}
		for i, cell := range from.Cells {
			if r.cells[i] = fmt.Sprint(cell); r.cells[i] == noCell {
				r.cells[i] = ""
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

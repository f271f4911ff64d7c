// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/openapi"
	"k8s.io/klog/v2"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/utils/clock"
)

const (
	// The list of documents is read again when it is indexAge old, so that a schema that has changed is seen by then; and
	// when an object does not fit, unless that was done within indexPause.
	indexAge   = 5 * time.Minute
	indexPause = 10 * time.Second
)

// cluster holds the schemas that a cluster serves, a document for each group and version that was asked for. client-go's
// cache of such documents keeps them, and the first error, for good.
type cluster struct {
	client openapi.ClientWithContext
	clock  clock.PassiveClock
	// turn is held by whoever reads or writes what follows.
	turn chan struct{}
	// index has the documents by their path; asked is when it was last asked for.
	index map[string]openapi.GroupVersionWithContext
	asked time.Time
	held  map[schema.GroupVersion]document
}

// document is what was made of one document.
type document struct {
	// url names the document with its hash.
	url string
	// types is nil if the document could not be made a schema.
	types managedfields.TypeConverter
}

// finder finds the schemas of a group's version, nil if there are none.
type finder func(context.Context, schema.GroupVersion) (managedfields.TypeConverter, error)

func newCluster(client openapi.ClientWithContext, passive clock.PassiveClock) *cluster {
	return &cluster{client: client, clock: passive, turn: make(chan struct{}, 1), held: map[schema.GroupVersion]document{}}
}

// finders are to be tried one after the other: by what is held, and by what the cluster says now.
func (c *cluster) finders() []finder {
	if c == nil {
		return nil
	}
	within := func(age time.Duration) finder {
		return func(ctx context.Context, gv schema.GroupVersion) (managedfields.TypeConverter, error) {
			return c.find(ctx, gv, age)
		}
	}
	return []finder{within(indexAge), within(indexPause)}
}

func (c *cluster) find(ctx context.Context, gv schema.GroupVersion, age time.Duration) (managedfields.TypeConverter, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := c.readIndex(ctx, age); err != nil {
		return nil, err
	}
	served, ok := c.index[pathOf(gv)]
	if !ok {
		return nil, nil
	}
	if held, ok := c.held[gv]; ok && held.url == served.ServerRelativeURL() {
		return held.types, nil
	}
	types, err := read(ctx, served)
	if err != nil {
		return nil, err
	}
	c.held[gv] = document{served.ServerRelativeURL(), types}
	return types, nil
}

// readIndex reads the list of documents unless it was asked for recently. One that is held outlives failures: what it says
// is more likely to be true than nothing.
func (c *cluster) readIndex(ctx context.Context, age time.Duration) error {
	if c.index != nil && c.clock.Since(c.asked) < age {
		return nil
	}
	index, err := c.client.PathsWithContext(ctx)
	c.asked = c.clock.Now()
	if err != nil && c.index == nil {
		return fmt.Errorf("list the documents: %w", err)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot list the cluster's OpenAPI documents; going on with those that were listed before")
		return nil
	}
	c.index = index
	for gv := range c.held {
		if _, ok := index[pathOf(gv)]; !ok {
			delete(c.held, gv)
		}
	}
	return nil
}

// pathOf is where the document of a group's version is.
func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.Group + "/" + gv.Version
}

func read(ctx context.Context, served openapi.GroupVersionWithContext) (managedfields.TypeConverter, error) {
	text, err := served.SchemaWithContext(ctx, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	// The paths, which are most of a document, are not for us.
	var content struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("read %s: %w", served.ServerRelativeURL(), err)
	}
	types, err := managedfields.NewTypeConverter(content.Components.Schemas, false)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot use an OpenAPI document of the cluster; its lists are compared as a whole", "url", served.ServerRelativeURL())
		return nil, nil
	}
	return types, nil
}

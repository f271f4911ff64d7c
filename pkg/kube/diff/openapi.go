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

// The index of documents is listed again once it is indexAge old, which bounds how long a changed schema goes
// unnoticed. If an object does not fit its schema, it is listed again once it is indexRetry old.
const (
	// The list of documents is read again when it is indexAge old, so that a schema that has changed is seen by then; and
	// when an object does not fit, unless that was done within indexRetry.
	indexAge   = 5 * time.Minute
	indexRetry = 10 * time.Second
)

// schemaCache caches the schemas that a cluster serves, one document for each group and version that was looked up. It
// replaces client-go's cache, which keeps documents, and the first error, forever.
type schemaCache struct {
	client openapi.ClientWithContext
	clock  clock.PassiveClock
	// lock is a mutex for the fields below whose waiters observe their contexts.
	lock chan struct{}
	// index maps paths to documents. listedAt is when it was last listed.
	index    map[string]openapi.GroupVersionWithContext
	listedAt time.Time
	cached   map[schema.GroupVersion]document
}

// document is a cached schema document.
type document struct {
	// url identifies the document, including its hash.
	url string
	// types is nil if the document is no usable schema.
	types managedfields.TypeConverter
}

// lookup returns the schemas of a group version, nil if there are none.
type lookup func(context.Context, schema.GroupVersion) (managedfields.TypeConverter, error)

func newSchemaCache(client openapi.ClientWithContext, passive clock.PassiveClock) *schemaCache {
	return &schemaCache{client: client, clock: passive, lock: make(chan struct{}, 1), cached: map[schema.GroupVersion]document{}}
}

// lookups returns the lookups to try in order: with the cached index, and with a fresh one.
func (c *schemaCache) lookups() []lookup {
	if c == nil {
		return nil
	}
	within := func(age time.Duration) lookup {
		return func(ctx context.Context, gv schema.GroupVersion) (managedfields.TypeConverter, error) {
			return c.find(ctx, gv, age)
		}
	}
	return []lookup{within(indexAge), within(indexRetry)}
}

func (c *schemaCache) find(ctx context.Context, gv schema.GroupVersion, age time.Duration) (managedfields.TypeConverter, error) {
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
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
	if cached, ok := c.cached[gv]; ok && cached.url == served.ServerRelativeURL() {
		return cached.types, nil
	}
	types, err := read(ctx, served)
	if err != nil {
		return nil, err
	}
	c.cached[gv] = document{served.ServerRelativeURL(), types}
	return types, nil
}

// readIndex lists the documents unless that happened recently. After a failure it keeps the previous index, which is
// more likely to be right than none.
func (c *schemaCache) readIndex(ctx context.Context, age time.Duration) error {
	if c.index != nil && c.clock.Since(c.listedAt) < age {
		return nil
	}
	index, err := c.client.PathsWithContext(ctx)
	c.listedAt = c.clock.Now()
	if err != nil && c.index == nil {
		return fmt.Errorf("list OpenAPI documents: %w", err)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Failed to list OpenAPI documents, using the previous list")
		return nil
	}
	c.index = index
	for gv := range c.cached {
		if _, ok := index[pathOf(gv)]; !ok {
			delete(c.cached, gv)
		}
	}
	return nil
}

// pathOf returns the path of a group version's document.
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
	// Skip the paths, which are most of a document.
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
		klog.FromContext(ctx).Error(err, "Failed to use OpenAPI document, comparing its lists as a whole", "url", served.ServerRelativeURL())
		return nil, nil
	}
	return types, nil
}

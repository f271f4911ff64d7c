// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configmaps creates and changes the objects that benchmarks have mirrored.
package configmaps

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Writers is the number of concurrent clients.
const Writers = 8

// perNamespace is the number of objects in a namespace, unless the population has another one.
const perNamespace = 100

// Namespaces returns the labels of the namespaces of a population.
func Namespaces() map[string]string { return map[string]string{"bench": "population"} }

// settings is content that makes an object about 1 KiB large, as a ConfigMap with one file.
var settings = strings.Repeat("server.connections.limit = 100 # per address\n", 20)

// writeKey is the key of the data with the number of an object's last write, and contentKey that of the constant content.
const writeKey, contentKey = "write", "server.properties"

// Population is a set of ConfigMaps, numbered from 0, in namespaces of the same size.
// Each has the number of its last write.
type Population struct {
	Core kubernetes.Interface
	Size int
	// NamespaceSize is the number of objects in each namespace, 100 if it is zero.
	NamespaceSize int
	// Distinct gives each object other settings.
	Distinct bool

	writes atomic.Int64
}

// Grow creates objects up to the given number.
func (p *Population) Grow(b testing.TB, size int) {
	b.Helper()
	for number := p.Size; number < size; number += p.namespaceSize() {
		CreateNamespace(b, p.Core, p.Next(number).Namespace, Namespaces())
	}
	Each(b, p.Size, size, func(ctx context.Context, number int) error {
		object := p.Next(number)
		_, err := p.Core.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	p.Size = size
}

// Each calls a function for the numbers of a half-open range, with the concurrency of Writers.
func Each(b testing.TB, from, to int, call func(ctx context.Context, number int) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(Writers)
	for number := from; number < to; number++ {
		group.Go(func() error { return call(ctx, number) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// CreateNamespace creates a namespace.
func CreateNamespace(b testing.TB, core kubernetes.Interface, name string, labels map[string]string) {
	b.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := core.CoreV1().Namespaces().Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// namespaceSize returns the number of objects in each namespace.
func (p *Population) namespaceSize() int { return cmp.Or(p.NamespaceSize, perNamespace) }

// Next returns an object for its next write.
func (p *Population) Next(number int) *corev1.ConfigMap { return p.At(number, p.writes.Add(1)) }

// At returns an object at the write with a number.
func (p *Population) At(number int, write int64) *corev1.ConfigMap {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("shop-%04d", number/p.namespaceSize()),
			Name:      fmt.Sprintf("settings-%06d", number), Labels: map[string]string{"app": "shop"},
		},
		Data: map[string]string{writeKey: strconv.FormatInt(write, 10), contentKey: settings},
	}
	if p.Distinct {
		object.Data[contentKey] = distinctSettings(number)
	}
	return object
}

// distinctSettings are like settings, but a different number in each line of each object makes them as compressible as those of an application.
func distinctSettings(number int) string {
	random := rand.New(rand.NewPCG(uint64(number), 0))
	var lines strings.Builder
	for range 20 {
		fmt.Fprintf(&lines, "server.connections.limit = %d # per address\n", random.IntN(1_000_000))
	}
	return lines.String()
}

// Update updates an object and returns the result.
func (p *Population) Update(ctx context.Context, number int) (*corev1.ConfigMap, error) {
	return p.UpdateAs(ctx, p.Core, number)
}

// UpdateAs updates an object as the user of a client and returns the result.
func (p *Population) UpdateAs(ctx context.Context, core kubernetes.Interface, number int) (*corev1.ConfigMap, error) {
	object := p.Next(number)
	return core.CoreV1().ConfigMaps(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
}

// Line returns the line of an object's file that has the number of its last write.
func Line(object *corev1.ConfigMap) string {
	return fmt.Sprintf("%s: %q\n", writeKey, object.Data[writeKey])
}

// Content returns the data of an object as one text.
func Content(object *corev1.ConfigMap) string {
	return object.Data[writeKey] + "\n" + object.Data[contentKey]
}

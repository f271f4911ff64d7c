// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

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

// writers is the number of concurrent clients.
const writers = 8

// settings is content that makes an object about 1 KiB large, as a ConfigMap with one file.
var settings = strings.Repeat("server.connections.limit = 100 # per address\n", 20)

// perNamespace is the number of objects in a namespace of the population.
const perNamespace = 100

// populated is the labels of the namespaces of a population.
var populated = map[string]string{"bench": "population"}

// population is a set of ConfigMaps, numbered from 0, in namespaces of perNamespace each.
// Each has the number of its last write.
type population struct {
	core   kubernetes.Interface
	size   int
	writes atomic.Int64
	// namespaceSize replaces perNamespace, unless it is zero.
	namespaceSize int
	// distinct gives each object other settings.
	distinct bool
}

// grow creates objects up to the given number.
func (p *population) grow(b *testing.B, size int) {
	b.Helper()
	for number := p.size; number < size; number += perNamespace {
		createNamespace(b, p.core, p.next(number).Namespace, populated)
	}
	each(b, p.size, size, func(ctx context.Context, number int) error {
		object := p.next(number)
		_, err := p.core.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	p.size = size
}

// addSecrets creates a Secret with the name and content of each object.
func (p *population) addSecrets(b *testing.B) {
	b.Helper()
	each(b, 0, p.size, func(ctx context.Context, number int) error {
		object := p.next(number)
		secret := &corev1.Secret{ObjectMeta: object.ObjectMeta, StringData: object.Data}
		_, err := p.core.CoreV1().Secrets(object.Namespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	})
}

// each calls a function for the numbers of a half-open range, with the concurrency of writers.
func each(b *testing.B, from, to int, call func(ctx context.Context, number int) error) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(writers)
	for number := from; number < to; number++ {
		group.Go(func() error { return call(ctx, number) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

func createNamespace(b *testing.B, core kubernetes.Interface, name string, labels map[string]string) {
	b.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	if _, err := core.CoreV1().Namespaces().Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
}

// next returns an object for its next write.
func (p *population) next(number int) *corev1.ConfigMap { return p.object(number, p.writes.Add(1)) }

// object returns an object at the write with a number.
func (p *population) object(number int, write int64) *corev1.ConfigMap {
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("shop-%04d", number/cmp.Or(p.namespaceSize, perNamespace)),
			Name:      fmt.Sprintf("settings-%06d", number), Labels: map[string]string{"app": "shop"},
		},
		Data: map[string]string{"write": strconv.FormatInt(write, 10), "server.properties": settings},
	}
	if p.distinct {
		object.Data["server.properties"] = distinctSettings(number)
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

// update updates an object and returns the result.
func (p *population) update(ctx context.Context, number int) (*corev1.ConfigMap, error) {
	object := p.next(number)
	return p.core.CoreV1().ConfigMaps(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
}

// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// writers is how many clients write at once.
const writers = 8

// settings make an object about 1 KiB, as a ConfigMap with one file in it is.
var settings = strings.Repeat("server.connections.limit = 100 # per address\n", 20)

// perNamespace is how many objects a namespace of the population has.
const perNamespace = 100

// populated are the labels of the namespaces of a population.
var populated = map[string]string{"bench": "population"}

// population is ConfigMaps, numbered from 0, in namespaces of perNamespace each. Each holds
// the number of the write that made it what it is.
type population struct {
	core   kubernetes.Interface
	size   int
	writes atomic.Int64
}

// grow makes objects until there are that many.
func (p *population) grow(b *testing.B, size int) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(writers)
	for ; p.size < size; p.size++ {
		object := p.next(p.size)
		if p.size%perNamespace == 0 {
			createNamespace(b, p.core, object.Namespace, populated)
		}
		group.Go(func() error {
			_, err := p.core.CoreV1().ConfigMaps(object.Namespace).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
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

// next is an object as its next write makes it.
func (p *population) next(number int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("shop-%04d", number/perNamespace), Name: fmt.Sprintf("settings-%06d", number), Labels: map[string]string{"app": "shop"},
		},
		Data: map[string]string{"write": strconv.FormatInt(p.writes.Add(1), 10), "server.properties": settings},
	}
}

// update writes an object and returns it as it is then.
func (p *population) update(ctx context.Context, number int) (*corev1.ConfigMap, error) {
	object := p.next(number)
	return p.core.CoreV1().ConfigMaps(object.Namespace).Update(ctx, object, metav1.UpdateOptions{})
}

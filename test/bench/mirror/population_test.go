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

// population is the ConfigMaps of one namespace, numbered from 0. Each holds the number of
// the write that made it what it is.
type population struct {
	core      kubernetes.Interface
	namespace string
	size      int
	writes    atomic.Int64
}

func (s *stage) newPopulation(b *testing.B, namespace string) *population {
	b.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := s.core.CoreV1().Namespaces().Create(b.Context(), object, metav1.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	return &population{core: s.core, namespace: namespace}
}

// grow makes objects until there are that many.
func (p *population) grow(b *testing.B, size int) {
	b.Helper()
	group, ctx := errgroup.WithContext(b.Context())
	group.SetLimit(writers)
	for ; p.size < size; p.size++ {
		object := p.next(p.size)
		group.Go(func() error {
			_, err := p.core.CoreV1().ConfigMaps(p.namespace).Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}

// next is an object as its next write makes it.
func (p *population) next(number int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name(number), Labels: map[string]string{"app": "shop"}},
		Data:       map[string]string{"write": strconv.FormatInt(p.writes.Add(1), 10), "server.properties": settings},
	}
}

func name(number int) string { return fmt.Sprintf("settings-%06d", number) }

// update writes an object and returns it as it is then.
func (p *population) update(ctx context.Context, number int) (*corev1.ConfigMap, error) {
	return p.core.CoreV1().ConfigMaps(p.namespace).Update(ctx, p.next(number), metav1.UpdateOptions{})
}

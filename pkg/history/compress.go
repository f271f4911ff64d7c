// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

// Transformers returns those of a server, with compression of Changes before they are encrypted.
func Transformers(delegate value.ResourceTransformers) value.ResourceTransformers {
	return transformers{delegate}
}

type transformers struct{ value.ResourceTransformers }

// TransformerForResource implements value.ResourceTransformers.
func (t transformers) TransformerForResource(resource schema.GroupResource) value.Transformer {
	transformer := t.ResourceTransformers.TransformerForResource(resource)
	if resource != Resource {
		return transformer
	}
	return compressing{transformer}
}

// compressed precedes compressed values. Others are JSON.
var compressed = []byte("s2:1:")

// maxChange bounds a Change that is decompressed. It is the limit of a stored object.
const maxChange = 1 << 20

// compressing compresses values before it passes them on. What all Changes have in common is in a dictionary, so that most of what
// remains of a Change are its names and hashes.
type compressing struct{ value.Transformer }

// TransformToStorage implements value.Transformer.
func (c compressing) TransformToStorage(ctx context.Context, plain []byte, dataCtx value.Context) ([]byte, error) {
	return c.Transformer.TransformToStorage(ctx, Compress(plain), dataCtx)
}

// TransformFromStorage implements value.Transformer.
func (c compressing) TransformFromStorage(ctx context.Context, stored []byte, dataCtx value.Context) ([]byte, bool, error) {
	packed, stale, err := c.Transformer.TransformFromStorage(ctx, stored, dataCtx)
	if err != nil {
		return nil, stale, err
	}
	plain, err := Decompress(packed)
	return plain, stale, err
}

// Compress returns the stored form of a Change, before it is encrypted. It returns what is compressed as it is.
func Compress(plain []byte) []byte {
	if bytes.HasPrefix(plain, compressed) {
		return plain
	}
	scratch, _ := scratches.Get().(*[]byte)
	*scratch = slices.Grow((*scratch)[:0], s2.MaxEncodedLen(len(plain)))
	packed := slices.Concat(compressed, dictionary.Encode((*scratch)[:cap(*scratch)], plain))
	if cap(*scratch) <= maxScratch {
		scratches.Put(scratch)
	}
	return packed
}

// maxScratch is the size in bytes beyond which the memory of Compress is not kept.
const maxScratch = 64 << 10

// scratches has memory for Compress, which needs more than its result has.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// Decompress returns what Compress was called with. It returns other values as they are.
func Decompress(packed []byte) ([]byte, error) {
	block, ok := bytes.CutPrefix(packed, compressed)
	if !ok {
		return packed, nil
	}
	if n, err := s2.DecodedLen(block); err != nil || n > maxChange {
		return nil, errors.Join(errors.New("decompress a Change"), err)
	}
	plain, err := dictionary.Decode(nil, block)
	if err != nil {
		return nil, fmt.Errorf("decompress a Change: %w", err)
	}
	return plain, nil
}

// dictionary has what most Changes contain, the most frequent at the end. It is part of the stored format: changing it makes stored
// Changes unreadable.
var dictionary = s2.MakeDict([]byte(
	`"operation":"Create""operation":"Delete""operation":"Compared""signal":"Admission""fieldManager":"kube-controller-manager"`+
		`"apiVersion":"v1","kind":"Secret","resource":"secrets""apiVersion":"v1","kind":"ConfigMap","resource":"configmaps"`+
		`"apiVersion":"v1","kind":"Service","resource":"services""apiVersion":"batch/v1","kind":"CronJob","resource":"cronjobs"`+
		`"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","resource":"rolebindings"`+
		`"apiVersion":"networking.k8s.io/v1","kind":"Ingress","resource":"ingresses""apiVersion":"autoscaling/v2",`+
		`"kind":"HorizontalPodAutoscaler","resource":"horizontalpodautoscalers""apiVersion":"apps/v1","kind":"StatefulSet",`+
		`"resource":"statefulsets"system:serviceaccount:kube-system:kubernetes-admin[UPDATE] apps/v1/deployments `+
		`{"kind":"Change","apiVersion":"configbutler.ai/v1alpha1","metadata":{"name":"","namespace":"default","uid":"",`+
		`"creationTimestamp":"2026-11-26T12:00:00Z"},"spec":{"object":{"apiVersion":"apps/v1","kind":"Deployment",`+
		`"resource":"deployments","namespace":"default","name":"","uid":""},"operation":"Update","time":"2026-11-26T12:00:00.000000Z",`+
		`"resourceVersions":{"first":"","last":""},"author":{"username":"@example.com","signal":"Audit"},`+
		`"commits":[{"destinationRef":{"namespace":"default","name":"main"},"sha":"","path":".yaml","url":"https://github.com/commit/",`+
		`"blobBefore":"","blobAfter":""}]}}`), nil)

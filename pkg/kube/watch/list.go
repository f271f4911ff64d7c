// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pageSize is the limit of one list request, as in client-go's pager.
const pageSize = 500

// Lister reads the objects of a type.
type Lister struct {
	reader Reader
}

// NewLister returns a Lister that reads through a Reader.
func NewLister(reader Reader) *Lister {
	return &Lister{reader: reader}
}

// List calls each for every object of the watch, ordered by namespace and name, at most once per object, with the
// resourceVersion that List returns. It holds one page of objects in memory. The callee may keep and change the object. If it
// returns an error, List stops and returns that error unchanged.
//
// The list is consistent: all objects are read at that resourceVersion, which is not older than the call. If the API server
// compacts that version during the list (after about five minutes), the remaining objects are read at a newer version.
// A caller that watches from the returned resourceVersion or an older one misses no object: the watch returns what has
// changed in the part already read.
//
// Errors of the server are wrapped and can be examined with apierrors. After an error, objects that were not passed to each
// may exist. An error for an expired resource means that the server cannot continue the list; the caller has to start again.
func (l *Lister) List(
	ctx context.Context, watch Watch, each func(object *unstructured.Unstructured, resourceVersion string) error,
) (resourceVersion string, err error) {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := l.page(ctx, watch, options)
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", watch, err)
		}
		if resourceVersion == "" {
			resourceVersion = page.GetResourceVersion()
		}
		for i := range page.Items {
			if err := each(&page.Items[i], resourceVersion); err != nil {
				return "", err
			}
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return resourceVersion, nil
		}
	}
}

// page reads one page. An expired continue token is replaced, once, by the token that the server returns for continuing at
// the current resourceVersion.
func (l *Lister) page(ctx context.Context, watch Watch, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	page, err := l.request(ctx, watch, options)
	if token := continueAtCurrent(err); token != "" && options.Continue != "" {
		options.Continue = token
		return l.request(ctx, watch, options)
	}
	return page, err
}

func (l *Lister) request(ctx context.Context, watch Watch, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return l.reader.list(ctx, watch, options)
}

// isExpired reports whether an error has one of the two reasons of HTTP status 410.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// continueAtCurrent returns the token for continuing an expired list at the current resourceVersion, empty if there is none.
func continueAtCurrent(err error) string {
	var status apierrors.APIStatus
	if !isExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

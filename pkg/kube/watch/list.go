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

// pageSize is how many objects one request of a list asks for, as in client-go's own pager.
const pageSize = 500

// Lister reads the objects of a type.
type Lister struct {
	reader Reader
}

// NewLister returns a lister of what the reader reads.
func NewLister(reader Reader) *Lister {
	return &Lister{reader: reader}
}

// List calls each for every object of the watch, in the order of namespace and name and each at most once, and holds
// one page of objects at a time. The object belongs to each, which ends the list by returning an error; List returns
// that error as it is.
//
// The objects are read consistently: all of them at the resourceVersion that is returned, which is not older than the
// call. If the API server compacts that version while a list goes on (after about five minutes), the rest is read at
// a newer version instead. No object is missed by a caller that watches from the returned resourceVersion or an older
// one: what has changed since in the part already read comes through the watch.
//
// Errors of the server are wrapped; apierrors tells them apart. After an error nothing may be concluded about objects
// that were not seen. An expired resource means that the server offered no way to go on, and that the list has to be
// begun anew.
func (l *Lister) List(
	ctx context.Context, watch Watch, each func(*unstructured.Unstructured) error,
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
			if err := each(&page.Items[i]); err != nil {
				return "", err
			}
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return resourceVersion, nil
		}
	}
}

// page reads one page. A continue token that has expired is replaced, once, by the one that the server offers for
// going on at its present resourceVersion.
func (l *Lister) page(ctx context.Context, watch Watch, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	page, err := l.request(ctx, watch, options)
	if token := continueAtPresent(err); token != "" && options.Continue != "" {
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

// isExpired holds for both reasons that come with HTTP status 410.
func isExpired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

func continueAtPresent(err error) string {
	var status apierrors.APIStatus
	if !isExpired(err) || !errors.As(err, &status) {
		return ""
	}
	return status.Status().Continue
}

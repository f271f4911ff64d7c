// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/source"
)

func TestReasonFor(t *testing.T) {
	resource := schema.GroupResource{Resource: "widgets"}
	for name, test := range map[string]struct {
		err  error
		want source.Reason
	}{
		"no error":           {nil, ""},
		"forbidden":          {apierrors.NewForbidden(resource, "", errors.New("no")), source.Forbidden},
		"unauthorized":       {apierrors.NewUnauthorized("who"), source.Unauthorized},
		"not found":          {apierrors.NewNotFound(resource, ""), source.Gone},
		"no such verb":       {apierrors.NewMethodNotSupported(resource, "watch"), source.Gone},
		"expired":            {apierrors.NewResourceExpired("old"), source.Expired},
		"gone":               {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone}}, source.Expired},
		"too many requests":  {apierrors.NewTooManyRequests("wait", 1), source.Overloaded},
		"unavailable":        {apierrors.NewServiceUnavailable("down"), source.Unreachable},
		"timeout":            {apierrors.NewTimeoutError("slow", 1), source.Unreachable},
		"no answer in time":  {fmt.Errorf("asking: %w", context.DeadlineExceeded), source.Unreachable},
		"refused":            {&url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, source.Unreachable},
		"name not found":     {&net.DNSError{Name: "nowhere", IsNotFound: true}, source.Unreachable},
		"connection dropped": {&url.Error{Op: "Get", Err: io.EOF}, source.Unreachable},
		"bad request":        {apierrors.NewBadRequest("what"), source.Failed},
		"another error":      {errors.New("surprise"), source.Failed},
		"wrapped":            {fmt.Errorf("listing: %w", apierrors.NewForbidden(resource, "", errors.New("no"))), source.Forbidden},
	} {
		if got := source.ReasonFor(test.err); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

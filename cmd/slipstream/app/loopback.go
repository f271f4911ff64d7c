// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
)

// newLoopbackClient returns a client of this server, by its loopback configuration. user is the user agent of its requests. The client
// has no rate limit, because the server limits requests itself, and compresses nothing, because the bytes do not leave the machine.
func newLoopbackClient(loopback *rest.Config, user string) (versioned.Interface, error) {
	config := rest.AddUserAgent(rest.CopyConfig(loopback), user)
	config.QPS = -1
	config.DisableCompression = true
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return exemptReads{next} })
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client of this server for %s: %w", user, err)
	}
	return client, nil
}

// exemptReads makes the server serve its own reads until it has ended: a request of a user that is in flight at a shutdown can need them.
// k8s.io/apiserver knows requests of a server to itself by their user agent, from which it also derives the field manager of writes, so
// writes are not changed.
type exemptReads struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = exemptReads{}

// RoundTrip sends a request.
func (e exemptReads) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		request = utilnet.CloneRequest(request)
		request.Header.Set("User-Agent", "kube-apiserver/"+request.Header.Get("User-Agent"))
	}
	return e.next.RoundTrip(request)
}

// WrappedRoundTripper returns the round tripper that sends the requests.
func (e exemptReads) WrappedRoundTripper() http.RoundTripper { return e.next }

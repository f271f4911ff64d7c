// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/generated/clientset/versioned"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// Connect returns clients for the API server of flags and kubeconfigs.
func Connect(config genericclioptions.RESTClientGetter) (client.ConfigbutlerV1alpha1Interface, error) {
	found, err := config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	found = rest.CopyConfig(found)
	found.Wrap(func(next http.RoundTripper) http.RoundTripper { return unservedRequests{next} })
	clients, err := versioned.NewForConfig(found)
	if err != nil {
		return nil, err
	}
	return clients.ConfigbutlerV1alpha1(), nil
}

// maxStatus bounds a status that is read, in bytes.
const maxStatus = 1 << 20

// unservedRequests adds the API group to the status of a request that the server does not serve. Such a status names nothing; without the
// group, Explain cannot know that the request was one to Slipstream.
type unservedRequests struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (u unservedRequests) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := u.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusNotFound {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Reason == metav1.StatusReasonNotFound && namesNothing(status.Details) {
		status.Details = &metav1.StatusDetails{
			Group: v1alpha1.GroupName, Causes: []metav1.StatusCause{{Type: metav1.CauseTypeUnexpectedServerResponse, Message: status.Message}},
		}
		if body, err = json.Marshal(status); err != nil {
			return nil, err
		}
		response.ContentLength = int64(len(body))
		response.Header.Del("Content-Length")
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// namesNothing reports whether the details of a status name neither an object nor a type.
func namesNothing(details *metav1.StatusDetails) bool {
	return details == nil || details.Group == "" && details.Kind == "" && details.Name == ""
}

// WrappedRoundTripper implements net.RoundTripperWrapper.
func (u unservedRequests) WrappedRoundTripper() http.RoundTripper { return u.RoundTripper }

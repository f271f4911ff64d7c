// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package apierror_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

const hidden = "correct-horse-battery"

func TestIsAbsent(t *testing.T) {
	ofProxy := apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", schema.GroupResource{Resource: "secrets"}, "a", "", 0, true)
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                     {nil, false},
		"the object does not exist":    {apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "a"), true},
		"a 404 that is not of the API": {ofProxy, false},
		"forbidden":                    {apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "a", nil), false},
	} {
		if got := apierror.IsAbsent(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestRedactSecret(t *testing.T) {
	network := errors.New("connection refused")
	if got := apierror.RedactSecret(network); !errors.Is(got, network) || got.Error() != network.Error() {
		t.Errorf("error of the network: %v", got)
	}
	status := func(code int32, reason metav1.StatusReason, message string) error {
		return fmt.Errorf("send: %w", &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
			Details: &metav1.StatusDetails{Name: hidden, RetryAfterSeconds: 7, Causes: []metav1.StatusCause{{Message: hidden}}},
		}})
	}
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"webhook that denies": {
			status(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "w.example.com" denied the request: `+hidden),
			`admission webhook "w.example.com" denied the request`,
		},
		"anything else": {
			status(http.StatusForbidden, metav1.StatusReasonForbidden, hidden+" is a bad password"),
			"the API server returns 403 Forbidden; its message may quote the Secret and is left out",
		},
	} {
		got := apierror.RedactSecret(tt.err)
		seconds, delayed := apierrors.SuggestsClientDelay(got)
		if got.Error() != tt.want || strings.Contains(fmt.Sprintf("%+v %#v", got, got), hidden) ||
			!apierrors.IsForbidden(got) || !delayed || seconds != 7 {
			t.Errorf("%s: %#v", name, got)
		}
	}
}

func TestSecretMessage(t *testing.T) {
	for cause, want := range map[metav1.CauseType]string{
		metav1.CauseTypeFieldValueInvalid: "is not valid, or cannot be changed",
		"":                                "the API server rejects the request; its message may quote the Secret and is left out",
	} {
		if got := apierror.SecretMessage(cause, "Invalid value: "+hidden); got != want {
			t.Errorf("%s: %q, want %q", cause, got, want)
		}
	}
}

// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// Docs is the address of the pages that hints refer to, which users of a release do not have as files.
const Docs = "https://github.com/configbutler/slipstream/blob/main/docs/"

// explainTimeout limits how long the cluster is asked about an error.
const explainTimeout = 5 * time.Second

// explained is an error with what the user can do about it.
type explained struct {
	error
	hint string
}

// Error returns the error, and the hint on lines of its own.
func (e *explained) Error() string { return e.error.Error() + "\n" + e.hint }

// Unwrap returns the error without the hint.
func (e *explained) Unwrap() error { return e.error }

// Explain adds to an error of a command what the user can do about it. ExitCode returns the same for both.
func Explain(ctx context.Context, config genericclioptions.RESTClientGetter, err error) error {
	if err == nil {
		return nil
	}
	err = escape(err)
	if ctx.Err() != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, explainTimeout)
	defer cancel()
	if hint := hintFor(ctx, config, err); hint != "" {
		return &explained{err, hint}
	}
	return err
}

// Hinted adds to an error what the user can do about it.
func Hinted(err error, hint string) error { return &explained{err, hint} }

// HintOf returns what Explain has added to an error, and the error without it.
func HintOf(err error) (hint string, without error) {
	if found := (*explained)(nil); errors.As(err, &found) {
		return found.hint, found.error
	}
	return "", err
}

// hintFor returns what the user can do about an error, or nothing.
func hintFor(ctx context.Context, config genericclioptions.RESTClientGetter, err error) string {
	if clientcmd.IsEmptyConfig(err) {
		return "kubectl has no cluster to connect to: set KUBECONFIG, or give --kubeconfig, or choose a context with kubectl config use-context"
	}
	if apierrors.IsUnauthorized(err) {
		return "The login is not valid, or has expired. Log in again, as for kubectl: kubectl auth whoami shows whether it works"
	}
	if IsOver(err) && !isDial(err) {
		return "" // The user has set the time limit, or ended the command.
	}
	if unreached := (*url.Error)(nil); errors.As(err, &unreached) {
		return unreachable(config, unreached)
	}
	status, ours := statusOf(err)
	switch {
	case status == nil:
		return ""
	case apierrors.IsForbidden(err):
		return forbidden(status.Message)
	case !ours:
		return ""
	case apierrors.IsServiceUnavailable(err), isUnserved(status):
		return unserved(ctx, config, status)
	case apierrors.IsNotFound(err):
		return suggestion(ctx, config, err, status.Details)
	}
	return ""
}

// isDial reports whether there was no connection to the API server.
func isDial(err error) bool {
	failed := (*net.OpError)(nil)
	return errors.As(err, &failed) && failed.Op == "dial"
}

// statusOf returns the API server's status in an error, and whether it is about an object of configbutler.ai.
func statusOf(err error) (status *metav1.Status, ours bool) {
	answered := apierrors.APIStatus(nil)
	if !errors.As(err, &answered) {
		return nil, false
	}
	found := answered.Status()
	return &found, found.Details != nil && found.Details.Group == v1alpha1.GroupName
}

// isUnserved reports whether the API server does not know the path of a request.
func isUnserved(status *metav1.Status) bool {
	if status.Reason != metav1.StatusReasonNotFound {
		return false
	}
	for _, cause := range status.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return false
}

// unreachable returns what to do if the API server does not answer.
func unreachable(config genericclioptions.RESTClientGetter, unreached *url.Error) string {
	host := unreached.URL
	if found, err := config.ToRESTConfig(); err == nil {
		host = found.Host
	}
	return fmt.Sprintf("The API server %s cannot be reached. Check the address with kubectl config view --minify, and the network, such as a "+
		"VPN: kubectl cluster-info shows whether kubectl reaches it", host)
}

const (
	notInstalled = "Slipstream is not installed in this cluster, or not completely: " + Docs + "install.md describes it. " +
		"kubectl get apiservice " + apiService + " shows whether its API is registered"
	unavailable = Unavailable + ". See why, or give the commands to an administrator:\n  " + seeRegistration + "\n  " + seePods
	// Unavailable says that the server does not run.
	Unavailable = "Slipstream's API is registered, and its server does not answer now"
	// SeeUnavailable has the commands that say why.
	SeeUnavailable  = seeRegistration + "; " + seePods
	seeRegistration = "kubectl get apiservice " + apiService
	seePods         = "kubectl get pods -A -l app.kubernetes.io/name=slipstream"
	apiService      = "v1alpha1." + v1alpha1.GroupName
)

// unserved returns what to do if Slipstream's API is not served, or not all of it.
func unserved(ctx context.Context, config genericclioptions.RESTClientGetter, status *metav1.Status) string {
	if status.Reason != metav1.StatusReasonNotFound {
		return unavailable
	}
	discovery, err := config.ToDiscoveryClient()
	if err != nil {
		return notInstalled
	}
	err = discovery.RESTClient().Get().AbsPath("/apis/" + v1alpha1.SchemeGroupVersion.String()).Do(ctx).Error()
	switch {
	case apierrors.IsServiceUnavailable(err):
		return unavailable
	case err != nil:
		return notInstalled
	}
	return "Slipstream in this cluster does not have this request: it is older than the plugin. kubectl slipstream needs the version of the server"
}

// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestCompletionOfAClusterThatHangs ends after the time limit, also while types are discovered.
func TestCompletionOfAClusterThatHangs(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	config := genericclioptions.NewConfigFlags(false)
	nothing := os.DevNull
	config.APIServer, config.KubeConfig, config.CacheDir = &s.URL, &nothing, &nothing
	completer := &Completer{config, time.Millisecond}
	command := &cobra.Command{}
	command.SetContext(t.Context())
	for name, complete := range map[string]cobra.CompletionFunc{
		"name": completer.Name(v1alpha1.SchemeGroupVersion.WithResource("environments"), false),
		"flag": completer.Flag(v1alpha1.SchemeGroupVersion.WithResource("environments"), false), "object": completer.Object,
	} {
		for _, prefix := range []string{"", "configmaps/"} {
			if found, directive := complete(command, nil, prefix); len(found) > 0 || directive != cobra.ShellCompDirectiveNoFileComp {
				t.Errorf("%s %q: %v, %v", name, prefix, found, directive)
			}
		}
	}
}

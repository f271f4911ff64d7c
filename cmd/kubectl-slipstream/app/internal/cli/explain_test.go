// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
)

// TestExplainTimeout blames the network for a connection that takes too long, and not for a time limit of the user.
func TestExplainTimeout(t *testing.T) {
	config, none := genericclioptions.NewConfigFlags(false), os.DevNull
	config.KubeConfig = &none
	for name, tt := range map[string]struct {
		err        error
		isNetworks bool
	}{
		"limit":      {err: context.DeadlineExceeded},
		"interrupt":  {err: context.Canceled},
		"connection": {err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}, isNetworks: true},
		"refused":    {err: &net.OpError{Op: "dial", Err: net.ErrClosed}, isNetworks: true},
	} {
		err := cli.Explain(t.Context(), config, &url.Error{Op: "Get", URL: "https://api.example.com", Err: tt.err})
		if strings.Contains(err.Error(), "VPN") != tt.isNetworks {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

// EnvironmentOptions configure all environments, in addition to the SyncPolicy.
type EnvironmentOptions struct {
	// TrackingMarks are ownership marks that are removed from copies, in the syntax of objectcopy.ParseMarks.
	TrackingMarks []string
}

func newEnvironmentOptions() *EnvironmentOptions {
	return &EnvironmentOptions{TrackingMarks: objectcopy.DefaultMarkTexts()}
}

func (o *EnvironmentOptions) addFlags(flags *cliflag.NamedFlagSets) {
	flags.FlagSet("environments").StringSliceVar(&o.TrackingMarks, "environment-tracking-marks", o.TrackingMarks,
		"Labels and annotations by which tools track what they own. Copies in environments do not have them. "+
			"Each is a key (example.com/owner), a key with a value (example.com/owner=tool), or all keys of a domain (example.com/*). "+
			"spec.trackingMarks of the SyncPolicy adds others. Repeat or separate with commas.")
}

// Marks parses TrackingMarks. An error names the invalid mark.
func (o *EnvironmentOptions) Marks() (objectcopy.Marks, error) {
	marks, err := objectcopy.ParseMarks(o.TrackingMarks...)
	if err != nil {
		return marks, fmt.Errorf("--environment-tracking-marks: %w", err)
	}
	return marks, nil
}

func (o *EnvironmentOptions) validate() []error {
	if _, err := o.Marks(); err != nil {
		return []error{err}
	}
	return nil
}

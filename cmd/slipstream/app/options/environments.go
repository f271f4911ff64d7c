// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"

	cliflag "k8s.io/component-base/cli/flag"

	"github.com/configbutler/slipstream/pkg/kube/objectcopy"
)

// EnvironmentOptions say what is the same for all environments, whatever the SyncPolicy says.
type EnvironmentOptions struct {
	// TrackingMarks are labels and annotations by which tools find what they own, which copies do not have, as
	// transplant.ParseMarks reads them.
	TrackingMarks []string
}

func newEnvironmentOptions() *EnvironmentOptions {
	return &EnvironmentOptions{TrackingMarks: objectcopy.DefaultMarkTexts()}
}

func (o *EnvironmentOptions) addFlags(flags *cliflag.NamedFlagSets) {
	flags.FlagSet("environments").StringSliceVar(&o.TrackingMarks, "environment-tracking-marks", o.TrackingMarks,
		"Labels and annotations by which tools find what they own, which copies in environments do not have: keys (example.com/owner), "+
			"keys with a value (example.com/owner=tool), or all keys of a domain (example.com/*). spec.trackingMarks of the SyncPolicy adds others. "+
			"Repeat or separate with commas.")
}

// Marks returns what TrackingMarks says. The error names the mark that is wrong.
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

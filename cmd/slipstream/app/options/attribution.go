// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	certutil "k8s.io/client-go/util/cert"

	"github.com/configbutler/slipstream/pkg/attribution/webhook"
)

const (
	// defaultMaxWait is slightly more than the delay of an API server's audit webhook with the documented settings.
	defaultMaxWait = 2 * time.Second
	// longestMaxWait is the delay of an API server's audit webhook with default settings. A longer wait is useless.
	longestMaxWait = 30 * time.Second
	// auditClientName is the common name in the certificate that the plugin creates for kube-apiserver's audit webhook.
	auditClientName = "kube-apiserver-audit"
)

// AttributionOptions configure how long a change waits for its author, and who is allowed to report authors.
type AttributionOptions struct {
	// MaxWait limits how long a change waits for the report of its author.
	MaxWait time.Duration
	// AuditClientCAFile and AuditClientNames are the authority and the common names of client certificates that are
	// allowed to send audit events. Without the file, none are accepted.
	AuditClientCAFile string
	AuditClientNames  []string
	// AdmissionSegmentFile holds the secret last segment of the path that accepts admission reviews without the
	// aggregator. Without it, none are accepted.
	AdmissionSegmentFile string
	// AdmissionClientCAFile is the authority of client certificates that are additionally required there.
	AdmissionClientCAFile string
}

func newAttributionOptions() *AttributionOptions {
	return &AttributionOptions{MaxWait: defaultMaxWait, AuditClientNames: []string{auditClientName}}
}

func (o *AttributionOptions) addFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.MaxWait, "attribution-max-wait", o.MaxWait,
		"Maximum time that a change waits for the audit event or admission review that names its author. "+
			"Without one it is committed with what is known. A change waits only where reports come, or came lately, "+
			"and usually only as long as these take. 0 disables waiting.")
	flags.StringVar(&o.AuditClientCAFile, "audit-client-ca-file", o.AuditClientCAFile,
		"File with the CA certificates of the clients that may send audit events to /audit. Read again when it changes. "+
			"Without it no audit events are accepted.")
	flags.StringSliceVar(&o.AuditClientNames, "audit-client-names", o.AuditClientNames,
		"Common names that a certificate of --audit-client-ca-file may have. "+
			"They are also the users that must be allowed to post to /audit. Repeat or separate with commas.")
	flags.StringVar(&o.AdmissionSegmentFile, "admission-segment-file", o.AdmissionSegmentFile,
		"File with the secret last segment of /process-validating-webhook/SEGMENT, which accepts admission reviews that do not come "+
			"through the aggregator. At least 32 characters. Each line is a segment. Read again when it changes. "+
			"Without it no admission reviews are accepted there.")
	flags.StringVar(&o.AdmissionClientCAFile, "admission-client-ca-file", o.AdmissionClientCAFile,
		"File with the CA certificates of the client certificates that the path of --admission-segment-file also requires. "+
			"Read again when it changes.")
}

func (o *AttributionOptions) validate() []error {
	var errs []error
	if o.MaxWait < 0 || o.MaxWait > longestMaxWait {
		errs = append(errs, fmt.Errorf("--attribution-max-wait=%v must be between 0s and %v", o.MaxWait, longestMaxWait))
	}
	if len(o.AuditClientNames) == 0 || slices.Contains(o.AuditClientNames, "") {
		errs = append(errs, errors.New("--audit-client-names must be one or several names, none of them empty"))
	}
	if o.AdmissionClientCAFile != "" && o.AdmissionSegmentFile == "" {
		errs = append(errs, errors.New("--admission-client-ca-file has no meaning without --admission-segment-file"))
	}
	if o.AdmissionSegmentFile != "" {
		if err := webhook.CheckSegmentFile(o.AdmissionSegmentFile); err != nil {
			errs = append(errs, fmt.Errorf("--admission-segment-file: %w", err))
		}
	}
	errs = append(errs, validateAuthorities("audit-client-ca-file", o.AuditClientCAFile)...)
	return append(errs, validateAuthorities("admission-client-ca-file", o.AdmissionClientCAFile)...)
}

// validateAuthorities requires certificates in the file of a flag.
func validateAuthorities(flag, file string) []error {
	if file == "" {
		return nil
	}
	if _, err := certutil.NewPool(file); err != nil {
		return []error{fmt.Errorf("--%s must be a file of certificates in PEM: %w", flag, err)}
	}
	return nil
}

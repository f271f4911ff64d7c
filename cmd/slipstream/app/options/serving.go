// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/apimachinery/pkg/api/validate/content"
	genericoptions "k8s.io/apiserver/pkg/server/options"
)

const (
	defaultService              = "slipstream"
	defaultCertificateDuration  = 24 * time.Hour
	defaultAuthorityDuration    = 365 * 24 * time.Hour
	shortestCertificateDuration = 30 * time.Second
)

// ServingOptions configure the serving certificate and the authorities that the cluster trusts for it. Without
// AuthoritySecret and AuthorityFile the cluster's objects are not changed.
type ServingOptions struct {
	// Service is the name of the server's Service in its namespace.
	Service string
	// AuthoritySecret is the Secret in the server's namespace with the server's own authority.
	AuthoritySecret string
	// CertificateDuration and AuthorityDuration are the validity periods of what the server issues.
	CertificateDuration, AuthorityDuration time.Duration
	// AuthorityFile has the authorities for a certificate in files.
	AuthorityFile string
}

func newServingOptions() *ServingOptions {
	return &ServingOptions{
		Service: defaultService, CertificateDuration: defaultCertificateDuration, AuthorityDuration: defaultAuthorityDuration,
	}
}

func (o *ServingOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.AuthoritySecret, "serving-authority-secret", o.AuthoritySecret,
		"Secret in --namespace for an authority of the server's own, which the server creates if it is missing. "+
			"The server signs short-lived serving certificates in memory and keeps caBundle of its APIService and webhook up to date. "+
			"Replaces --tls-cert-file and --tls-private-key-file.")
	flags.DurationVar(&o.CertificateDuration, "serving-certificate-duration", o.CertificateDuration,
		"Lifetime of the certificates of --serving-authority-secret. They are renewed after two thirds of it.")
	flags.DurationVar(&o.AuthorityDuration, "serving-authority-duration", o.AuthorityDuration,
		"Lifetime of the authority of --serving-authority-secret. It is replaced after two thirds of it.")
	flags.StringVar(&o.AuthorityFile, "serving-authority-file", o.AuthorityFile,
		"File with the authorities, in PEM, that signed --tls-cert-file. "+
			"The server keeps caBundle of its APIService and webhook up to date with it, "+
			"and serves a new certificate of another authority only once the cluster trusts it. Read again when it changes.")
	flags.StringVar(&o.Service, "serving-service", o.Service,
		"Service in --namespace in front of the server. Its names are in the certificates of --serving-authority-secret, "+
			"and the server keeps caBundle of the clients that connect to it up to date.")
}

// validate returns all errors, in addition to those of upstream's flags for files.
func (o *ServingOptions) validate(files genericoptions.CertKey) []error {
	var errs []error
	if problems := content.IsDNS1123Label(o.Service); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--serving-service=%q is not a name of a Service: %s", o.Service, strings.Join(problems, "; ")))
	}
	withFiles := files.CertFile != "" && files.KeyFile != ""
	switch {
	case o.AuthoritySecret != "" && o.AuthorityFile != "":
		errs = append(errs, errors.New("--serving-authority-secret and --serving-authority-file cannot be used together"))
	case o.AuthoritySecret != "" && (files.CertFile != "" || files.KeyFile != ""):
		errs = append(errs, errors.New("--serving-authority-secret cannot be used with --tls-cert-file and --tls-private-key-file: "+
			"the server creates its certificate itself"))
	case o.AuthorityFile != "" && !withFiles:
		errs = append(errs, errors.New("--serving-authority-file has no meaning without --tls-cert-file and --tls-private-key-file"))
	}
	errs = append(errs, validateAuthorities("serving-authority-file", o.AuthorityFile)...)
	if o.AuthoritySecret != "" {
		errs = append(errs, o.validateOwn()...)
	}
	return errs
}

// validateOwn validates the flags for the server's own authority.
func (o *ServingOptions) validateOwn() []error {
	var errs []error
	if problems := content.IsDNS1123Subdomain(o.AuthoritySecret); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--serving-authority-secret=%q is not a name of a Secret: %s", o.AuthoritySecret,
			strings.Join(problems, "; ")))
	}
	if o.CertificateDuration < shortestCertificateDuration {
		errs = append(errs, fmt.Errorf("--serving-certificate-duration=%v must be at least %v", o.CertificateDuration,
			shortestCertificateDuration))
	}
	if o.AuthorityDuration < 3*o.CertificateDuration {
		errs = append(errs, fmt.Errorf("--serving-authority-duration=%v must be at least three times --serving-certificate-duration=%v",
			o.AuthorityDuration, o.CertificateDuration))
	}
	return errs
}

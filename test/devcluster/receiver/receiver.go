// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package receiver receives the CloudEvents of a SyncPipeline and prints a line for each object in them.
package receiver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

const (
	// maxEvent is the maximum size of an event, in bytes.
	maxEvent = 16 << 20
	// typePrefix is the prefix of the types of all events of pipelines.
	typePrefix = "ai.configbutler."
)

// Receiver prints received events.
type Receiver struct {
	mutex sync.Mutex
	out   io.Writer
}

var _ http.Handler = &Receiver{}

// New returns a receiver that prints to out.
func New(out io.Writer) *Receiver { return &Receiver{out: out} }

// changes is the body of an event.
type changes struct {
	Upserts []object `json:"upserts"`
	Deletes []object `json:"deletes"`
}

// object is a CustomResourceDefinition, which has no apiVersion here, or an instance of a type.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// String reads like "shop.example.com/v1 Coupon shop/spring".
func (o object) String() string {
	if o.APIVersion == "" {
		return o.Name
	}
	return o.APIVersion + " " + o.Kind + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// ServeHTTP handles one event. It is accepted after it has been printed.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	event := request.Header.Get("Ce-Type")
	if request.Method != http.MethodPost || request.Header.Get("Ce-Specversion") != "1.0" || !strings.HasPrefix(event, typePrefix) {
		http.Error(w, "want a POST with a CloudEvent 1.0 of a pipeline in binary mode", http.StatusBadRequest)
		return
	}
	var received changes
	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxEvent)).Decode(&received); err != nil {
		http.Error(w, fmt.Sprintf("decoding the event: %v", err), http.StatusBadRequest)
		return
	}
	if err := r.print(strings.TrimPrefix(event, typePrefix), received); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintf(w, "printed %d\n", len(received.Upserts)+len(received.Deletes))
}

// print prints the deletes and then the upserts, in the order in which they apply.
func (r *Receiver) print(event string, received changes) error {
	var lines strings.Builder
	for _, gone := range received.Deletes {
		fmt.Fprintf(&lines, "%-17s  -  %s\n", event, gone)
	}
	for _, there := range received.Upserts {
		fmt.Fprintf(&lines, "%-17s  +  %s\n", event, there)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, err := io.WriteString(r.out, lines.String())
	return err
}

// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package receiver answers what a SyncPipeline sends: it takes CloudEvents and prints a line for each object that they tell of.
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
	// maxEvent is how much of an event is read, in bytes.
	maxEvent = 16 << 20
	// typePrefix begins the types of all events that pipelines send.
	typePrefix = "ai.configbutler."
)

// Receiver prints what it is told.
type Receiver struct {
	mutex sync.Mutex
	out   io.Writer
}

var _ http.Handler = &Receiver{}

// New returns a receiver that prints to out.
func New(out io.Writer) *Receiver { return &Receiver{out: out} }

// changes are what an event holds.
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

// ServeHTTP takes one event. It is accepted when it has been printed.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	event := request.Header.Get("Ce-Type")
	if request.Method != http.MethodPost || request.Header.Get("Ce-Specversion") != "1.0" || !strings.HasPrefix(event, typePrefix) {
		http.Error(w, "want a POST with a CloudEvent 1.0 of a pipeline in binary mode", http.StatusBadRequest)
		return
	}
	var told changes
	if err := json.NewDecoder(http.MaxBytesReader(w, request.Body, maxEvent)).Decode(&told); err != nil {
		http.Error(w, fmt.Sprintf("decoding the event: %v", err), http.StatusBadRequest)
		return
	}
	if err := r.print(strings.TrimPrefix(event, typePrefix), told); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = fmt.Fprintf(w, "printed %d\n", len(told.Upserts)+len(told.Deletes))
}

// print prints what is gone and then what is there, as it is to be understood.
func (r *Receiver) print(event string, told changes) error {
	var lines strings.Builder
	for _, gone := range told.Deletes {
		fmt.Fprintf(&lines, "%-17s  -  %s\n", event, gone)
	}
	for _, there := range told.Upserts {
		fmt.Fprintf(&lines, "%-17s  +  %s\n", event, there)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	_, err := io.WriteString(r.out, lines.String())
	return err
}

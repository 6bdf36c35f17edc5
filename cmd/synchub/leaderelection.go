/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/provider/fence"
)

// newLeaseLock returns the lock of the Lease that the leader holds. The fence is open while this replica holds it. Between the renew
// deadline, when the fence closes, and the lease duration, when another replica may lead, requests that are under way end.
func newLeaseLock(hosting *rest.Config, scheme *runtime.Scheme, settings v1alpha1.LeaderElectionConfiguration, fence *fence.Fence) (resourcelock.Interface, error) {
	client, err := corev1client.NewForConfig(rest.AddUserAgent(hosting, "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for events of the Lease: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.Events(settings.Namespace)})
	lock, err := leaderelection.NewResourceLock(hosting, leaseEvents{broadcaster: broadcaster, scheme: scheme}, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: leaseName, LeaderElectionNamespace: settings.Namespace, RenewDeadline: settings.RenewDeadline.Duration,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the lock of the Lease: %w", err)
	}
	return fence.Lock(lock, settings.RenewDeadline.Duration), nil
}

// leaseEvents makes the recorder of the Lease's events. The manager's own recorders exist only when the manager does.
type leaseEvents struct {
	recorder.Provider
	broadcaster record.EventBroadcaster
	scheme      *runtime.Scheme
}

// GetEventRecorderFor implements [recorder.Provider].
func (l leaseEvents) GetEventRecorderFor(name string) record.EventRecorder {
	return l.broadcaster.NewRecorder(l.scheme, corev1.EventSource{Component: name})
}

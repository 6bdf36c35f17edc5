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
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/synchub-dev/synchub/apis/config/v1alpha1"
	"github.com/synchub-dev/synchub/controllers"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/leases"
	"github.com/synchub-dev/synchub/provider/replicas"
	"github.com/synchub-dev/synchub/provider/storehistory"
)

// newLeaseWatcher returns a watcher of the leader's Lease or, if SyncTargets are sharded, of all Leases in the namespace.
func newLeaseWatcher(hosting *rest.Config, log logr.Logger, settings *v1alpha1.HubConfiguration) (*leases.Watcher, error) {
	client, err := coordinationv1client.NewForConfig(rest.AddUserAgent(hosting, "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for Leases: %w", err)
	}
	name := controllers.LeaseName
	if settings.Coordination == v1alpha1.CoordinationSharded {
		name = ""
	}
	return leases.NewWatcher(leases.Options{Leases: client.Leases(settings.LeaderElection.Namespace), Name: name, Clock: clock.RealClock{}, Log: log.WithName("leases")}), nil
}

// newLeaseLock returns the lock of the Lease that the leader holds. The fence is open while this replica holds it. Between the
// renew deadline, when the fence closes, and the lease duration, when another replica may lead, running requests end.
func newLeaseLock(hosting *rest.Config, dependencies controllers.Dependencies, settings *v1alpha1.HubConfiguration) (resourcelock.Interface, error) {
	election := settings.LeaderElection
	client, err := corev1client.NewForConfig(rest.AddUserAgent(hosting, "leader-election"))
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for events of the Lease: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: client.Events(election.Namespace)})
	lock, err := leaderelection.NewResourceLock(hosting, leaseEvents{broadcaster: broadcaster, scheme: controllers.Scheme()}, leaderelection.Options{
		LeaderElection: true, LeaderElectionID: controllers.LeaseName, LeaderElectionNamespace: election.Namespace, RenewDeadline: election.RenewDeadline.Duration,
		LeaderLabels: controllers.LeaderLabels(settings),
	})
	if err != nil {
		return nil, fmt.Errorf("cannot make the lock of the Lease: %w", err)
	}
	if leaseLock, ok := lock.(*resourcelock.LeaseLock); ok {
		leaseLock.Client = storehistory.LeasesGetter{LeasesGetter: leaseLock.Client, Guard: dependencies.History}
	}
	return dependencies.Leases.Lock(dependencies.Fence.Lock(lock, election.RenewDeadline.Duration), controllers.LeaseName, election.RetryPeriod.Duration), nil
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

// newReplicaMonitor returns a monitor that announces in the hosting cluster that this replica reaches kcp, and that ends a
// replica with work that does not reach kcp.
func newReplicaMonitor(hosting manager.Manager, replica replicaIdentity, dependencies controllers.Dependencies, settings *v1alpha1.HubConfiguration) (*replicas.Monitor, error) {
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	hostingClient, err := client.New(hosting.GetConfig(), client.Options{HTTPClient: hosting.GetHTTPClient(), Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the Leases of replicas: %w", err)
	}
	workspace := settings.KCP.ProviderWorkspace
	working, group, isReady := hosting.Elected(), "", (func() bool)(nil)
	if settings.Coordination == v1alpha1.CoordinationSharded {
		group, isReady = controllers.ReplicaGroup(workspace), dependencies.Ready.Load
		always := make(chan struct{})
		close(always)
		working = always
	}
	return replicas.New(replicas.Options{
		Hosting: hostingClient, Namespace: settings.LeaderElection.Namespace, Name: replica.name, Group: group, Pod: replica.pod, Elected: working, Clock: clock.RealClock{}, Log: dependencies.Log.WithName("replicas"),
		IsReady: isReady,
		Reach: func(ctx context.Context) error {
			_, err := kcp.WhoAmI(ctx, dependencies.Access.WorkspaceConfig(workspace))
			return err
		},
	}), nil
}

// replicaIdentity identifies this replica.
type replicaIdentity struct {
	name string
	// pod is nil outside a cluster.
	pod *metav1.OwnerReference
}

// newReplicaIdentity returns the identity of this process: its Pod's identity, or a new one. Outside a cluster several
// replicas may run on a host.
func newReplicaIdentity() replicaIdentity {
	name, uid := os.Getenv("POD_NAME"), os.Getenv("POD_UID")
	if name != "" && uid != "" {
		return replicaIdentity{name, &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: name, UID: types.UID(uid)}}
	}
	host, _ := os.Hostname()
	return replicaIdentity{name: cmp.Or(host, "replica") + "-" + string(uuid.NewUUID())}
}

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

package ownership_test

// deployment has lists with one key, several keys and defaulted keys, a set (finalizers), atomic lists and maps, and empty ones
// of each type.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  labels: {app: web, app.kubernetes.io/name: web}
  annotations: {note: "", synchub.dev/mark: "{}"}
spec:
  replicas: 2
  paused: false
  selector:
    matchLabels: {app: web}
  strategy: {}
  template:
    metadata:
      labels: {app: web}
      annotations: {}
      finalizers: [example.com/one, example.com/two]
    spec:
      nodeSelector: {disk: ssd}
      dnsConfig: {searches: [], options: []}
      imagePullSecrets: []
      initContainers: []
      tolerations:
      - {key: a, operator: Exists}
      - {key: b, operator: Equal, value: "1", effect: NoSchedule}
      securityContext: {runAsUser: 1000}
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 1
            podAffinityTerm: {topologyKey: zone}
      hostAliases:
      - {ip: 10.0.0.9, hostnames: [one, two]}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}
      - {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}
      containers:
      - name: web
        image: nginx
        args: []
        command: [run, "--fast"]
        envFrom: []
        ports:
        - {containerPort: 80}
        - {containerPort: 80, protocol: SCTP, name: sctp}
        - {containerPort: 80, protocol: UDP, name: udp}
        - {containerPort: 9090, name: metrics}
        env:
        - {name: A, value: "1"}
        - name: B
          valueFrom: {secretKeyRef: {name: s, key: k}}
        - {name: EMPTY, value: ""}
        resources:
          requests: {cpu: 1000m, memory: 1024Mi}
          limits: {}
        readinessProbe:
          httpGet: {path: /ready, port: 80}
        volumeMounts:
        - {name: scratch, mountPath: /tmp}
        - {name: scratch, mountPath: /var/tmp, readOnly: true}
      - name: sidecar
        image: busybox
        env: []
        ports: []
        resources: {}
        securityContext: {}
      volumes:
      - {name: scratch, emptyDir: {}}
      - name: config
        configMap:
          name: c
          items: [{key: a, path: b}]
      - name: all
        projected: {sources: [{secret: {name: s}}]}
`

const service = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop, labels: {a: b}}
spec:
  selector: {app: web}
  ports:
  - {name: dns, port: 53, targetPort: 53}
  - {name: dns-sctp, port: 53, targetPort: dns, protocol: SCTP}
  - {name: dns-udp, port: 53, targetPort: dns, protocol: UDP}
  externalIPs: [10.0.0.1, 10.0.0.2]
`

const configMap = `
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: shop, labels: {a: b}}
immutable: false
data: {a: x, b.properties: "k=v", c: ""}
binaryData: {d: AAE=}
`

const opaque = `
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: shop}
type: Opaque
data: {user: YQ==, password: ""}
`

const volumeClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: p, namespace: shop}
spec:
  accessModes: [ReadWriteOnce, ReadOnlyMany]
  resources: {requests: {storage: 1024Mi}}
`

const clusterRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: all}
aggregationRule:
  clusterRoleSelectors:
  - matchLabels: {aggregate: "true"}
rules: []
`

const serviceAccount = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: robot, namespace: shop}
automountServiceAccountToken: false
imagePullSecrets: [{name: one}, {name: two}]
secrets: [{name: token}]
`

const ingress = `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  tls: [{hosts: [a.example, b.example], secretName: t}]
  rules:
  - host: a.example
    http:
      paths:
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
`

var manifests = map[string]string{
	"Deployment": deployment, "Service": service, "ConfigMap": configMap, "Secret": opaque,
	"PersistentVolumeClaim": volumeClaim, "ClusterRole": clusterRole, "ServiceAccount": serviceAccount, "Ingress": ingress,
}

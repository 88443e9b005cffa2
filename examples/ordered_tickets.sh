#!/bin/sh
# A consumer of the master-consumers pattern made of curl and redis-cli alone. Start several, kill any of them: the
# messages of each ticket are handled in order, one at a time.
#
#   headrace serve --memory &                                    # or any Redis or Valkey
#   headrace ordered master --url redis://localhost:7379 &
#   redis-cli -p 7379 XADD ticket_stream '*' ticket_id 7 action refund
#   PORT=7379 examples/ordered_tickets.sh c1
#
# It has no health URL, so it lives by its calls: while it waits it sends heartbeats.
set -u

CONSUMER=${1:?give the consumer a name: examples/ordered_tickets.sh c1}
MASTER=${MASTER:-http://localhost:7381}
PORT=${PORT:-6379}
STREAM=${STREAM:-ticket_stream}
GROUP=${GROUP:-concurrency_stream_group}
DONE=${DONE:-/dev/stdout} # Where handled tickets are written down.

post() {
    curl --silent --show-error --max-time 10 -X POST "$MASTER$1" -d "$2"
}

leave() {
    post /api/consumers/leave "{\"consumer\": \"$CONSUMER\"}" >/dev/null
    exit 0
}
trap leave INT TERM

until post /api/consumers/register "{\"consumer\": \"$CONSUMER\", \"capacity\": 2}" | grep -q session; do
    sleep 1
done

while true; do
    # What is delegated to us: the name of the stream, an entry ID, then names and values, each on its line.
    delegated=$(redis-cli -p "$PORT" XREADGROUP GROUP "$GROUP" "$CONSUMER" COUNT 1 STREAMS "$STREAM" 0)
    message=$(printf '%s\n' "$delegated" | sed -n 2p)
    if [ -z "$message" ]; then
        post /api/consumers/heartbeat "{\"consumer\": \"$CONSUMER\"}" >/dev/null
        sleep 0.2
        continue
    fi
    ticket=$(printf '%s\n' "$delegated" | sed -n '/^ticket_id$/{n;p;q;}')

    # Here the work is done.
    printf '%s\n' "$delegated" | sed '1,2d' | paste -s -d ' ' - >>"$DONE"

    # A refusal (409) means that another has the ticket by now; the next read shows what is still ours.
    post /api/messages/acknowledge \
        "{\"consumer\": \"$CONSUMER\", \"ticket_id\": \"$ticket\", \"message_id\": \"$message\"}" >/dev/null
done

function drawHeap() { return {resize() {}, redraw() {}}; }

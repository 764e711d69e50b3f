#pragma once
struct mallinfo { int arena, ordblks, aordblks, mxordblk, uordblks, fordblks, usmblks; };
struct mallinfo mallinfo(void);

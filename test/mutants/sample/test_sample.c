/* The test of sample.c. */
int sample_fee(int weight);

int main(void) {
    return sample_fee(2) == 5 && sample_fee(50) == 20 ? 0 : 1;
}
